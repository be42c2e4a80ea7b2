-- Work items: which object is due for which controller, and who works on it. They are touched in the transaction of the
-- change itself, so no change is ever forgotten, whether a controller runs or not and wherever the event log is.

-- Controllers of all programs on this database.
create table plumbline.controller (
  name text collate "C" primary key, -- group/name
  api_group text collate "C" not null,
  kind text collate "C" not null,
  finalizer text,
  condition_types text[] not null default '{}',
  status_fields text[] not null default '{}',
  resync interval not null,
  -- The time of the last sign of life of a process that runs it.
  last_seen_at timestamptz not null default '-infinity',
  foreign key (api_group, kind) references plumbline.kind
);

create index controller_kind on plumbline.controller (api_group, kind);

-- Controllers of a kind that run elsewhere and report over HTTP: they have no work items, and their leases are their own.
create table plumbline.controller_elsewhere (
  name text collate "C" primary key, -- group/name
  api_group text collate "C" not null,
  kind text collate "C" not null,
  condition_types text[] not null default '{}',
  status_fields text[] not null default '{}',
  foreign key (api_group, kind) references plumbline.kind
);

create index controller_elsewhere_kind on plumbline.controller_elsewhere (api_group, kind);

-- All who have parts of a status to themselves.
create view plumbline.reporter as
  select name, api_group, kind, condition_types, status_fields from plumbline.controller union all
  select name, api_group, kind, condition_types, status_fields from plumbline.controller_elsewhere;

-- Changes of a kind that concern objects of a controller's kind.
create table plumbline.controller_watch (
  controller text collate "C" not null references plumbline.controller (name) on delete cascade,
  api_group text collate "C" not null,
  kind text collate "C" not null,
  primary key (api_group, kind, controller)
);

-- One row for each live object and controller of its kind. It stays: its due time is the next resync when nothing else is.
create table plumbline.work_item (
  controller text collate "C" not null,
  uid uuid not null,
  tenant text collate "C" not null,
  -- Which is done first: 0 deletions, 1 changes, 2 timers, retries and others' reports, 3 resync.
  class smallint not null,
  due_at timestamptz not null,
  -- Rises with every touch. A pass that ends compares: what came during it causes exactly one more.
  touches bigint not null default 1,
  -- The generation that the last pass saw, and how it went.
  generation bigint not null default 0,
  attempts integer not null default 0,
  -- Passes in a row that never ended: their process died, or was frozen.
  lost_passes integer not null default 0,
  last_error text,
  -- Since when there has been no good pass.
  failing_since timestamptz,
  -- The spec of this generation can never be made true: only another generation, or somebody who asks, is a reason to try.
  is_terminal boolean not null default false,
  -- Why the deletion waits.
  blocked_reason text,
  blocked_message text,
  -- In this order it also finds all items of an object.
  primary key (uid, controller)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The two orders in which items are claimed: tenants in turn, and by time.
create index work_item_fair on plumbline.work_item (controller, class, tenant, due_at) where class < 2;
create index work_item_timed on plumbline.work_item (controller, class, due_at) where class >= 2;

-- The right to act on one object, over all controllers and processes. Whoever writes under it names its token; the row
-- goes with the object, and no uid comes again.
create table plumbline.pass_lease (
  uid uuid primary key,
  holder text not null,
  fencing_token bigint not null,
  -- -infinity: it was given back.
  expires_at timestamptz not null,
  -- The holder before did not give it back: it died, or was frozen.
  was_abandoned boolean not null default false
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- States of watched objects that are yet to be mapped to the objects they concern.
create table plumbline.watch_change (
  id bigint generated always as identity primary key,
  controller text collate "C" not null,
  -- Later than now: mapping it has failed a moment ago.
  due_at timestamptz not null default '-infinity',
  tenant text not null,
  uid uuid not null,
  api_group text not null,
  version text not null,
  kind text not null,
  name text not null,
  resource_version bigint not null,
  generation bigint not null,
  creation_timestamp timestamptz not null,
  deletion_timestamp timestamptz,
  finalizers text[] not null,
  labels jsonb not null,
  annotations jsonb not null,
  owner_references jsonb not null,
  spec jsonb not null,
  status jsonb not null
);

create index watch_change_controller on plumbline.watch_change (controller, id);

grant select on plumbline.controller, plumbline.reporter to plumbline_server;
grant select on plumbline.controller_watch, plumbline.work_item, plumbline.pass_lease, plumbline.watch_change
  to plumbline_worker;

-- Wakes reconcilers as wake_publishers wakes publishers: only when one sleeps.
create function plumbline.wake_reconcilers() returns void
language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock_shared(hashtextextended('plumbline/reconciler-sleeps', 0)) then
    perform pg_notify('plumbline_work', '');
  end if;
end
$$;

-- Makes items of other objects than the written one due: collected here, since two writers must not wait for each other
-- because their objects have one owner. Moved to the items by whoever claims next: a deletion outranks a change, which
-- outranks a report, and what is due already keeps its place.
create table plumbline.touch (
  id bigint generated always as identity primary key,
  controller text collate "C" not null,
  uid uuid not null,
  tenant text not null,
  class smallint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Items that a writer has which stays open are left for later.
create function plumbline.apply_touches() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  ids bigint[];
begin
  with oldest as materialized (
    select id, controller, uid from plumbline.touch order by id limit 1000
  ), items as materialized (
    select w.controller, w.uid from plumbline.work_item w
    where (w.controller, w.uid) in (select controller, uid from oldest) order by w.uid, w.controller for update skip locked
  )
  select array_agg(id) into ids from oldest
    where (controller, uid) in (select controller, uid from items)
      or not exists (select from plumbline.work_item w where w.controller = oldest.controller and w.uid = oldest.uid);
  with taken as (
    delete from plumbline.touch where id = any (ids) returning controller, uid, tenant, class
  )
  insert into plumbline.work_item as w (controller, uid, tenant, class, due_at)
    select controller, uid, min(tenant), min(class), clock_timestamp() from taken
    group by uid, controller order by uid, controller
    on conflict (controller, uid) do update set
      touches = w.touches + 1,
      class = case when w.due_at <= excluded.due_at then least(w.class, excluded.class) else excluded.class end,
      due_at = least(w.due_at, excluded.due_at);
end
$$;

-- Makes the controllers of objects look again that are named as controlling owners.
create function plumbline.touch_owners(p_references jsonb[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
  insert into plumbline.touch (controller, uid, tenant, class)
  select c.name, r.uid, r.tenant, 1
  from (
    select distinct (o ->> 'uid')::uuid as uid from unnest(p_references) list, jsonb_array_elements(list) o
    where o ->> 'controller' = 'true' and o ->> 'uid' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  ) owner
  join plumbline.resource r on r.uid = owner.uid
  join plumbline.controller c on c.api_group = r.api_group and c.kind = r.kind
  where c.name <> coalesce(current_setting('plumbline.writer', true), '')
    or r.uid::text <> coalesce(current_setting('plumbline.writer_uid', true), '');
  if found then
    perform plumbline.wake_reconcilers();
  end if;
end
$$;

-- Makes the controllers of a Tenant look again.
create function plumbline.touch_tenants(p_names text[], p_class smallint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
  insert into plumbline.touch (controller, uid, tenant, class)
  select c.name, r.uid, r.tenant, p_class from plumbline.resource r
  join plumbline.controller c on c.api_group = r.api_group and c.kind = r.kind
  where r.tenant = 'system' and r.api_group = 'plumbline.dev' and r.kind = 'Tenant' and r.name = any (p_names);
  if found then
    perform plumbline.wake_reconcilers();
  end if;
end
$$;

-- What a change of objects touches: their own controllers, those of their owners, and those that watch their kind. The
-- writer's own controller is not woken by what it wrote itself. Each begins with one look at what there is to do: most
-- kinds have no controllers here.
create function plumbline.work_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_nestloop = off set jit = off as $$
declare
  is_controlled boolean;
  is_owned boolean;
  is_watched boolean;
begin
  select bool_or(exists (select from plumbline.controller c where c.api_group = n.api_group and c.kind = n.kind)),
    bool_or(n.is_owned),
    bool_or(exists (select from plumbline.controller_watch w where w.api_group = n.api_group and w.kind = n.kind))
    into is_controlled, is_owned, is_watched
    from (select api_group, kind, bool_or(owner_references <> '[]') as is_owned from new_rows group by api_group, kind) n;
  if is_controlled then
    insert into plumbline.work_item (controller, uid, tenant, class, due_at)
      select c.name, n.uid, n.tenant, 1, clock_timestamp()
      from new_rows n cross join lateral (
        select c.name from plumbline.controller c where c.api_group = n.api_group and c.kind = n.kind offset 0) c
      on conflict (controller, uid) do nothing;
    perform plumbline.wake_reconcilers();
  end if;
  if is_owned then
    perform plumbline.touch_owners(array(select distinct owner_references from new_rows where owner_references <> '[]'));
    perform plumbline.note_owner_changes(array(select uid from new_rows where owner_references <> '[]'), '{}');
  end if;
  if is_watched then
    insert into plumbline.watch_change (controller, tenant, uid, api_group, version, kind, name, resource_version,
      generation, creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status)
    select w.controller, n.tenant, n.uid, n.api_group, n.version, n.kind, n.name, n.resource_version, n.generation,
      n.creation_timestamp, n.deletion_timestamp, n.finalizers, n.labels, n.annotations, n.owner_references,
      plumbline.redact('spec', n.spec, k.redact), plumbline.redact('status', n.status, k.redact)
    from new_rows n join plumbline.controller_watch w on w.api_group = n.api_group and w.kind = n.kind
    join plumbline.kind k on k.api_group = n.api_group and k.kind = n.kind;
    perform plumbline.wake_reconcilers();
  end if;
  return null;
end
$$;

create function plumbline.work_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_nestloop = off set jit = off as $$
declare
  is_controlled boolean;
  is_owned boolean;
  is_watched boolean;
  is_propagating boolean;
begin
  select bool_or(exists (select from plumbline.controller c where c.api_group = n.api_group and c.kind = n.kind)),
    bool_or(n.is_owned) or exists (select from old_rows where owner_references <> '[]'),
    bool_or(exists (select from plumbline.controller_watch w where w.api_group = n.api_group and w.kind = n.kind)),
    bool_or(n.is_propagating)
    into is_controlled, is_owned, is_watched, is_propagating
    from (select api_group, kind, bool_or(owner_references <> '[]') as is_owned,
        bool_or(deletion_timestamp is not null and finalizers && '{foregroundDeletion,orphan}') as is_propagating
      from new_rows group by api_group, kind) n;
  if is_controlled then
    -- The number of touches tells below whether this is a reason to try what could not be done.
    insert into plumbline.work_item as w (controller, uid, tenant, class, due_at, touches)
      select c.name, n.uid, n.tenant, case
          when n.deletion_timestamp is not null and (news.is_reason or o.finalizers <> n.finalizers) then 0
          when not news.is_reason and o.status <> n.status and (o.finalizers, o.labels, o.annotations, o.owner_references)
            = (n.finalizers, n.labels, n.annotations, n.owner_references) then 2
          else 1 end,
        clock_timestamp(), case when news.is_reason then 1 else 2 end
      from new_rows n join old_rows o on o.uid = n.uid
      cross join lateral (select o.generation <> n.generation or (o.annotations -> 'plumbline.dev/reconcile-now')
        is distinct from (n.annotations -> 'plumbline.dev/reconcile-now') as is_reason) news
      cross join lateral (
        select c.name from plumbline.controller c where c.api_group = n.api_group and c.kind = n.kind offset 0) c
      where not (c.name = coalesce(current_setting('plumbline.writer', true), '')
          and coalesce(current_setting('plumbline.writer_uid', true), '') in ('', n.uid::text))
        -- The last finalizer is gone, and the object with it.
        and not (n.deletion_timestamp is not null and n.finalizers = '{}')
      order by n.uid, c.name
      on conflict (controller, uid) do update set
        touches = w.touches + 1,
        class = case when w.due_at <= excluded.due_at then least(w.class, excluded.class) else excluded.class end,
        due_at = least(w.due_at, excluded.due_at),
        -- Another generation, or somebody who asks, is a reason to try what could not be done, and with fresh patience.
        is_terminal = w.is_terminal and excluded.touches > 1,
        attempts = case when excluded.touches > 1 then w.attempts else 0 end
      where not w.is_terminal or excluded.touches = 1;
    if found then
      perform plumbline.wake_reconcilers();
    end if;
  end if;
  if is_owned then
    perform plumbline.touch_owners(array(
      select owner_references from new_rows where owner_references <> '[]' union
      select owner_references from old_rows where owner_references <> '[]'));
    if exists (select from new_rows n join old_rows o on o.uid = n.uid where o.owner_references <> n.owner_references) then
      perform plumbline.note_owner_changes(
        array(select n.uid from new_rows n join old_rows o on o.uid = n.uid where o.owner_references <> n.owner_references),
        array(select o.owner_references from new_rows n join old_rows o on o.uid = n.uid
          where o.owner_references <> n.owner_references));
    end if;
  end if;
  if is_propagating then
    perform plumbline.note_owner_changes(array(
      select n.uid from new_rows n join old_rows o on o.uid = n.uid
      where n.deletion_timestamp is not null and n.finalizers && '{foregroundDeletion,orphan}'
        and (o.deletion_timestamp is null or o.finalizers <> n.finalizers)), '{}');
  end if;
  if is_watched then
    insert into plumbline.watch_change (controller, tenant, uid, api_group, version, kind, name, resource_version,
      generation, creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status)
    select w.controller, n.tenant, n.uid, n.api_group, n.version, n.kind, n.name, n.resource_version, n.generation,
      n.creation_timestamp, n.deletion_timestamp, n.finalizers, n.labels, n.annotations, n.owner_references,
      plumbline.redact('spec', n.spec, k.redact), plumbline.redact('status', n.status, k.redact)
    from (
      select * from new_rows union all
      -- What it pointed at before may be concerned too; a status points at nothing.
      select o.* from old_rows o join new_rows n on n.uid = o.uid
      where (o.spec, o.labels, o.annotations) <> (n.spec, n.labels, n.annotations)
    ) n join plumbline.controller_watch w on w.api_group = n.api_group and w.kind = n.kind
    join plumbline.kind k on k.api_group = n.api_group and k.kind = n.kind;
    perform plumbline.wake_reconcilers();
  end if;
  return null;
end
$$;

create function plumbline.work_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
  -- As in finish_pass: the object, its lease, its items.
  delete from plumbline.pass_lease l using old_rows o where l.uid = o.uid;
  delete from plumbline.work_item w using old_rows o where w.uid = o.uid;
  -- A tenant that is being deleted waits for its objects.
  if exists (select from old_rows o join plumbline.stream s on s.tenant = o.tenant and s.closed_at is null
    where s.closing_at is not null) then
    perform plumbline.touch_tenants(array(select distinct tenant from old_rows), 0::smallint);
  end if;
  if exists (select from old_rows where owner_references <> '[]') then
    perform plumbline.touch_owners(array(select distinct owner_references from old_rows where owner_references <> '[]'));
  end if;
  -- Who depended on it, and whom it kept waiting.
  perform plumbline.note_owner_changes(
    array(select o.uid from old_rows o where exists (
      select from plumbline.resource d where d.owner_references <> '[]'
        and d.owner_references @> jsonb_build_array(jsonb_build_object('uid', o.uid)))),
    array(select owner_references from old_rows where owner_references <> '[]'));
  insert into plumbline.watch_change (controller, tenant, uid, api_group, version, kind, name, resource_version,
    generation, creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status)
  select w.controller, o.tenant, o.uid, o.api_group, o.version, o.kind, o.name, o.resource_version, o.generation,
    o.creation_timestamp, coalesce(o.deletion_timestamp, clock_timestamp()), o.finalizers, o.labels, o.annotations,
    o.owner_references, plumbline.redact('spec', o.spec, k.redact), plumbline.redact('status', o.status, k.redact)
  from old_rows o join plumbline.controller_watch w on w.api_group = o.api_group and w.kind = o.kind
  join plumbline.kind k on k.api_group = o.api_group and k.kind = o.kind;
  if found then
    perform plumbline.wake_reconcilers();
  end if;
  return null;
end
$$;

create trigger zz_work_insert after insert on plumbline.resource
  referencing new table as new_rows for each statement execute function plumbline.work_insert();
create trigger zz_work_update after update on plumbline.resource
  referencing old table as old_rows new table as new_rows for each statement execute function plumbline.work_update();
create trigger zz_work_delete after delete on plumbline.resource
  referencing old table as old_rows for each statement execute function plumbline.work_delete();

-- Whether a controller of this last sign of life is taken to be running: one that cron calls every minute is.
create function plumbline.is_running(p_last_seen_at timestamptz) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select p_last_seen_at > clock_timestamp() - interval '3 minutes'
$$;

-- Objects without an item, such as those older than their controller, get one: due in time for the next resync, spread
-- over it. One page in the order of uids; returns the last uid of the page, or null behind the last.
create function plumbline.fill_items(p_controller text, p_after uuid, p_limit integer) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  last uuid;
begin
  with page as (
    select r.uid, r.tenant, c.resync, r.deletion_timestamp from plumbline.controller c
    join plumbline.resource r on r.api_group = c.api_group and r.kind = c.kind
    where c.name = p_controller and r.uid > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
    order by r.uid limit p_limit
  ), filled as (
    insert into plumbline.work_item (controller, uid, tenant, class, due_at)
    select p_controller, p.uid, p.tenant, case when p.deletion_timestamp is null then 3 else 0 end,
      clock_timestamp() + case when p.deletion_timestamp is null then random() else 0 end * least(p.resync, interval '30 seconds')
    from page p where not exists (select from plumbline.work_item w where w.controller = p_controller and w.uid = p.uid)
    on conflict do nothing
  )
  select max(uid::text)::uuid into last from page;
  return last;
end
$$;

-- A process runs these controllers.
create function plumbline.report_alive(p_controllers text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update plumbline.controller c set last_seen_at = clock_timestamp()
    from (select name from plumbline.controller where name = any (p_controllers) order by name for update) alive
    where c.name = alive.name
$$;

grant execute on function plumbline.is_running to plumbline_server;
grant execute on function plumbline.fill_items, plumbline.report_alive to plumbline_worker;
