-- Passes: claiming what is due, the lease of the object, and the one fenced write at the end.

-- This installation, in the markers of everything that it makes elsewhere.
create table plumbline.installation (
  only_row boolean primary key default true check (only_row),
  id text not null default left(replace(gen_random_uuid()::text, '-', ''), 12)
);
insert into plumbline.installation default values;

-- Why things changed: kept for a while, a few for each object, the same thing said twice being counted.
create table plumbline.object_event (
  id uuid primary key default gen_random_uuid(),
  -- Of the tenant's incarnation: its successor of the same name sees nothing of it.
  stream bigint not null references plumbline.stream (id),
  tenant text collate "C" not null,
  api_group text not null,
  version text not null,
  kind text not null,
  name text not null,
  uid uuid not null,
  controller text not null,
  type text not null check (type in ('Normal', 'Warning')),
  reason text not null,
  message text not null,
  count integer not null default 1,
  first_at timestamptz not null default clock_timestamp(),
  last_at timestamptz not null default clock_timestamp(),
  unique (uid, controller, type, reason, message)
);

create index object_event_stream on plumbline.object_event (stream, last_at);

-- Writes that came too late: their pass had lost its lease.
create table plumbline.fenced_write (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  uid uuid not null,
  controller text not null,
  fencing_token bigint not null,
  deed text not null
);

grant select on plumbline.object_event to plumbline_server;
grant select on plumbline.installation, plumbline.fenced_write to plumbline_worker;

-- Locks the lease if this token still is the one; false, and noted, when it is not. Waits for nobody but a claim in flight.
create function plumbline.hold_lease(p_uid uuid, p_token bigint, p_controller text, p_deed text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.pass_lease where uid = p_uid and fencing_token = p_token for update;
  if found then
    return true;
  end if;
  insert into plumbline.fenced_write (uid, controller, fencing_token, deed) values (p_uid, p_controller, p_token, p_deed);
  return false;
end
$$;

create type plumbline.claimed_item as (controller text, uid uuid);

-- The next due items of one controller and class: changes and deletions by tenants in turn, the rest by time. Only those
-- that no lease holds, as far as this snapshot knows, and whose lock is free: until the end of this transaction no other
-- begins or ends a pass of them. In this order, and for each row by itself: a join would read all leases for each claim.
create function plumbline.due_items(
  p_controller text, p_class smallint, p_after_tenant text, p_limit integer, p_chosen uuid[]
) returns setof plumbline.claimed_item
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  turns text[];
  found uuid[];
  -- A constant: only so an index is asked for what is due, instead of for all that ever will be.
  now_at constant timestamptz := clock_timestamp();
begin
  if p_class >= 2 then
    return query select w.controller, w.uid from plumbline.work_item w
      where w.controller = p_controller and w.class = p_class and w.class >= 2 and w.due_at <= now_at
        and w.uid <> all (p_chosen)
        and case when coalesce((select l.expires_at <= now_at from plumbline.pass_lease l where l.uid = w.uid), true)
          then pg_try_advisory_xact_lock(hashtextextended('plumbline/pass/' || w.uid, 0)) else false end
      order by w.due_at limit p_limit;
    return;
  end if;
  with recursive behind as (
    (select tenant from plumbline.work_item where controller = p_controller and class = p_class and class < 2
      and tenant > p_after_tenant order by tenant limit 1)
    union all
    select (select w.tenant from plumbline.work_item w where w.controller = p_controller and w.class = p_class
      and w.class < 2 and w.tenant > b.tenant order by w.tenant limit 1) from behind b where b.tenant is not null
  ), before as (
    (select tenant from plumbline.work_item where controller = p_controller and class = p_class and class < 2
      and tenant <= p_after_tenant order by tenant limit 1)
    union all
    select (select w.tenant from plumbline.work_item w where w.controller = p_controller and w.class = p_class
      and w.class < 2 and w.tenant > b.tenant and w.tenant <= p_after_tenant order by w.tenant limit 1)
    from before b where b.tenant is not null
  )
  select array_agg(tenant) into turns from (
    select tenant from (
      (select tenant from behind where tenant is not null limit p_limit) union all
      (select tenant from before where tenant is not null limit p_limit)
    ) both_sides limit p_limit
  ) first;
  if turns is null then
    return;
  end if;
  select array_agg(item.uid) into found from unnest(turns) with ordinality t (tenant, n)
    cross join lateral (
      select w.uid from plumbline.work_item w
      where w.controller = p_controller and w.class = p_class and w.class < 2 and w.tenant = t.tenant
        and w.due_at <= now_at and w.uid <> all (p_chosen)
        and case when coalesce((select l.expires_at <= now_at from plumbline.pass_lease l where l.uid = w.uid), true)
          then pg_try_advisory_xact_lock(hashtextextended('plumbline/pass/' || w.uid, 0)) else false end
      order by w.due_at limit ceil(p_limit::numeric / cardinality(turns))
    ) item;
  found := coalesce(found, '{}');
  if cardinality(found) < p_limit then
    -- Tenants whose passes all run, or that have little to do, leave their room to the others.
    select found || coalesce(array_agg(more.uid), '{}') into found from (
      select w.uid from plumbline.work_item w
      where w.controller = p_controller and w.class = p_class and w.class < 2 and w.due_at <= now_at
        and w.uid <> all (p_chosen) and w.uid <> all (found)
        and case when coalesce((select l.expires_at <= now_at from plumbline.pass_lease l where l.uid = w.uid), true)
          then pg_try_advisory_xact_lock(hashtextextended('plumbline/pass/' || w.uid, 0)) else false end
      limit p_limit - cardinality(found)
    ) more;
  end if;
  return query select p_controller, u from unnest(found[1:p_limit]) u;
end
$$;

-- Claims up to so many due items of these controllers, one for each object, and takes the objects' leases: they
-- alone decide, items are not locked. Deletions come before changes, those before timers, those before resync; but what has
-- waited for ten seconds gets a fourth of the room, so that no flood of changes starves it. Items without an object go.
create function plumbline.claim_passes(
  p_controllers text[], p_holder text, p_lease interval, p_limit integer, p_after_tenant text
) returns table (
  controller text, fencing_token bigint, was_abandoned boolean, lost_passes integer, touches bigint, attempts integer, item_class smallint,
  -- As it was when its touches were counted, and no earlier: a change in between would be taken for seen.
  object plumbline.resource
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
  -- A plan that was made while little was due must not read all items when much is, nor the reverse.
  set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  controllers text[] := '{}';
  uids uuid[] := '{}';
  one text;
  this_class smallint;
  room integer;
  found_controllers text[];
  found_uids uuid[];
  leased_uids uuid[];
  claimed record;
  started uuid[] := '{}';
  now_at constant timestamptz := clock_timestamp();
  overdue_room constant integer := case when p_limit >= 4 then p_limit / 4 when random() < 0.25 then 1 else 0 end;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'claim_passes needs READ COMMITTED; an older snapshot would claim what is done';
  end if;
  if exists (select from plumbline.touch) then
    perform plumbline.apply_touches();
  end if;
  if overdue_room > 0 then
    select array_agg(o.controller), array_agg(o.uid) into found_controllers, found_uids from (
      select w.controller, w.uid
      from unnest(p_controllers) c (controller) cross join unnest('{2,3}'::smallint[]) k (class) cross join lateral (
        select w.controller, w.uid, w.due_at from plumbline.work_item w
        where w.controller = c.controller and w.class = k.class and w.class >= 2
          and w.due_at <= now_at - interval '10 seconds'
          and case when coalesce((select l.expires_at <= now_at from plumbline.pass_lease l where l.uid = w.uid), true)
            then pg_try_advisory_xact_lock(hashtextextended('plumbline/pass/' || w.uid, 0)) else false end
        order by w.due_at limit overdue_room
      ) w order by w.due_at limit overdue_room
    ) o;
    controllers := controllers || coalesce(found_controllers, '{}');
    uids := uids || coalesce(found_uids, '{}');
  end if;
  for this_class, one, room in
    -- Mostly there is nothing in most of them.
    -- Controllers in any order; deletions leave a fourth of the room, and take what nobody else wants of it.
    select k.class, c.controller, p_limit - case k.n when 1 then p_limit / 4 else 0 end
    from unnest('{0,1,2,3,0}'::smallint[]) with ordinality k (class, n) cross join unnest(p_controllers) c (controller)
    where case when k.class < 2
      then exists (select from plumbline.work_item w
        where w.controller = c.controller and w.class = k.class and w.class < 2)
      else exists (select from plumbline.work_item w
        where w.controller = c.controller and w.class = k.class and w.class >= 2 and w.due_at <= now_at) end
    order by k.n, random()
  loop
    exit when cardinality(uids) >= p_limit;
    continue when cardinality(uids) >= room;
    select array_agg(d.controller), array_agg(d.uid) into found_controllers, found_uids
      from plumbline.due_items(one, this_class, p_after_tenant, room - cardinality(uids), uids) d;
    controllers := controllers || coalesce(found_controllers, '{}');
    uids := uids || coalesce(found_uids, '{}');
  end loop;
  if cardinality(uids) = 0 then
    return;
  end if;
  with due as (
    select distinct u.uid from unnest(uids) u (uid)
  ), leased as (
    insert into plumbline.pass_lease as l (uid, holder, fencing_token, expires_at)
      select due.uid, p_holder, 1, clock_timestamp() + p_lease from due order by due.uid
      on conflict (uid) do update set holder = excluded.holder, fencing_token = l.fencing_token + 1,
        expires_at = excluded.expires_at, was_abandoned = l.expires_at > '-infinity'
      where l.expires_at <= clock_timestamp()
      returning l.uid
  )
  select coalesce(array_agg(leased.uid), '{}') into leased_uids from leased;
  if exists (select from plumbline.pass_lease l where l.uid = any (leased_uids) and l.was_abandoned) then
    -- Written down before the next one begins: what kills a process may kill this one too. Not at the price of waiting for
    -- a writer that stays open.
    update plumbline.work_item w set lost_passes = w.lost_passes + 1 from (
      select i.controller, i.uid from plumbline.pass_lease l join plumbline.work_item i on i.uid = l.uid
      join unnest(controllers, uids) c (controller, uid) on c.controller = i.controller and c.uid = i.uid
      where l.uid = any (leased_uids) and l.was_abandoned for update of i skip locked
    ) i where w.controller = i.controller and w.uid = i.uid;
  end if;
  -- Read under the leases, by a statement that began after they were taken: nobody else can have ended a pass since. One
  -- item for each object, and only if it is still due.
  for claimed in
    select w.controller, l.fencing_token, l.was_abandoned, w.lost_passes, w.touches, w.attempts, w.class, r as object
    from unnest(leased_uids) u (uid)
    join plumbline.pass_lease l on l.uid = u.uid
    join plumbline.resource r on r.uid = u.uid
    cross join lateral (
      select w.* from unnest(controllers, uids) c (controller, uid) join plumbline.work_item w
        on w.controller = c.controller and w.uid = c.uid
      where c.uid = u.uid and w.due_at <= clock_timestamp() order by w.class limit 1
    ) w
  loop
    controller := claimed.controller;
    fencing_token := claimed.fencing_token;
    was_abandoned := claimed.was_abandoned;
    lost_passes := claimed.lost_passes;
    touches := claimed.touches;
    attempts := claimed.attempts;
    item_class := claimed.class;
    object := claimed.object;
    started := started || (claimed.object).uid;
    return next;
  end loop;
  if cardinality(started) < cardinality(leased_uids) then
    -- Done by another in between, or touched when the object was gone already.
    update plumbline.pass_lease l set expires_at = '-infinity' where l.uid = any (leased_uids) and l.uid <> all (started);
    delete from plumbline.work_item w where w.uid = any (leased_uids) and w.uid <> all (started)
      and not exists (select from plumbline.resource o where o.uid = w.uid);
    delete from plumbline.pass_lease l where l.uid = any (leased_uids) and l.uid <> all (started)
      and not exists (select from plumbline.resource o where o.uid = l.uid);
  end if;
end
$$;

-- Gives a lease back that finish_pass has kept.
create function plumbline.release_pass(p_uid uuid, p_token bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update plumbline.pass_lease set expires_at = '-infinity' where uid = p_uid and fencing_token = p_token
$$;

-- Extends the leases of passes that are running; returns the uids of those that were lost.
create function plumbline.renew_passes(p_uids uuid[], p_tokens bigint[], p_lease interval) returns setof uuid
language sql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
  with held as (
    select l.uid from unnest(p_uids, p_tokens) p (uid, token)
    join plumbline.pass_lease l on l.uid = p.uid and l.fencing_token = p.token
    where l.expires_at > clock_timestamp() order by l.uid for update of l
  ), renewed as (
    update plumbline.pass_lease l set expires_at = clock_timestamp() + p_lease from held where l.uid = held.uid returning l.uid
  )
  select p.uid from unnest(p_uids) p (uid) where p.uid not in (select uid from renewed)
$$;

-- The status with what one controller reports put in: its condition types, its fields, its external objects; everything
-- of others stays. Times of transition move only when the state does, so that a report that says nothing new changes
-- nothing.
create function plumbline.merge_status(p_status jsonb, p_controller text, p_report jsonb) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  now_text constant text := to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
  before constant jsonb := case when jsonb_typeof(p_status -> 'conditions') = 'array' then p_status -> 'conditions' else '[]' end;
  resources constant jsonb := case when jsonb_typeof(p_status -> 'resources') = 'array' then p_status -> 'resources' else '[]' end;
  merged jsonb := p_status || coalesce(p_report -> 'fields', '{}');
begin
  merged := merged - array(select jsonb_array_elements_text(coalesce(p_report -> 'removedFields', '[]')));
  merged := merged || jsonb_build_object('conditions', coalesce((
    select jsonb_agg(c order by c ->> 'type' collate "C") from (
      select c from jsonb_array_elements(before) c
      where not exists (select from jsonb_array_elements(p_report -> 'conditions') r where r ->> 'type' = c ->> 'type')
        and not coalesce(p_report -> 'removedConditions', '[]') ? (c ->> 'type')
      union all
      select r || jsonb_build_object('lastTransitionTime', coalesce((
          select b ->> 'lastTransitionTime' from jsonb_array_elements(before) b
          where b ->> 'type' = r ->> 'type' and b ->> 'status' = r ->> 'status'), now_text))
      from jsonb_array_elements(p_report -> 'conditions') r
    ) all_conditions (c)), '[]'));
  if p_report ? 'resources' then
    merged := merged || jsonb_build_object('resources', coalesce((
      select jsonb_agg(x order by x ->> 'controller' collate "C", x ->> 'class' collate "C", x ->> 'id' collate "C") from (
        select x from jsonb_array_elements(resources) x where x ->> 'controller' is distinct from p_controller
        union all
        select r || jsonb_build_object('controller', p_controller, 'lastTransitionTime', coalesce((
            select b ->> 'lastTransitionTime' from jsonb_array_elements(resources) b
            where b ->> 'controller' = p_controller and b ->> 'class' = r ->> 'class' and b ->> 'id' = r ->> 'id'
              and b ->> 'state' = r ->> 'state'), now_text))
        from jsonb_array_elements(p_report -> 'resources') r
      ) all_resources (x)), '[]'));
    if merged -> 'resources' = '[]' then
      merged := merged - 'resources';
    end if;
  end if;
  return merged;
end
$$;

-- Refuses a report of what belongs to another controller.
create function plumbline.assert_own_report(p_controller text, p_report jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  c plumbline.reporter;
  foreign_share text;
begin
  select * into strict c from plumbline.reporter where name = p_controller;
  select coalesce(
    (select 'condition ' || t from (select r ->> 'type' from jsonb_array_elements(p_report -> 'conditions') r union all
      select jsonb_array_elements_text(coalesce(p_report -> 'removedConditions', '[]'))) types (t)
      where t <> all (c.condition_types || '{DeletionBlocked,OwnershipConflict,Paused}') limit 1),
    (select 'field ' || f from (select jsonb_object_keys(coalesce(p_report -> 'fields', '{}')) union all
      select jsonb_array_elements_text(coalesce(p_report -> 'removedFields', '[]'))) fields (f)
      where f <> all (c.status_fields || '{lastReconcileNow}') limit 1)
  ) into foreign_share;
  if foreign_share is not null then
    raise exception 'controller % does not own the % of the status', p_controller, foreign_share
      using errcode = 'PL403', column = 'status',
        hint = 'Declare it in the controller''s conditions or statusFields, or leave it to whose it is.';
  end if;
end
$$;

-- Ends a pass: report, finalizer, events, next time, and the lease goes back, in one transaction.
--   finished  it is written
--   again     the same, and the item is due at once: it was touched during the pass
--   fenced    the lease was lost: nothing is written
--   gone      the object is not there any more
-- The order of locks is everywhere: the object, its lease, its items.
create function plumbline.finish_pass(
  p_controller text, p_uid uuid, p_token bigint, p_touches bigint, p_generation bigint,
  -- Absent: the status stays as it is.
  p_report jsonb,
  p_finalized boolean, p_events jsonb,
  -- When it is due next, if nothing touches it before.
  p_class smallint, p_after interval,
  -- Absent: a good pass.
  p_error text, p_is_terminal boolean, p_blocked_reason text, p_blocked_message text,
  -- The function still runs, though it was told to end: nobody else may begin.
  p_keep_lease boolean
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  r plumbline.resource;
  was_touched boolean;
begin
  perform pg_advisory_xact_lock(hashtextextended('plumbline/pass/' || p_uid, 0));
  if p_report is not null or p_finalized then
    select * into r from plumbline.resource where uid = p_uid for no key update;
  else
    select * into r from plumbline.resource where uid = p_uid;
  end if;
  if r.uid is null then
    return 'gone';
  end if;
  if not plumbline.hold_lease(p_uid, p_token, p_controller, 'finish') then
    return 'fenced';
  end if;
  perform from plumbline.work_item where uid = p_uid order by controller for update;
  if p_report is not null then
    perform plumbline.assert_own_report(p_controller, p_report);
  end if;
  if p_events is not null then
    perform plumbline.record_events(r, p_controller, p_events);
  end if;
  update plumbline.work_item w set
      class = case when w.touches = p_touches then p_class else w.class end,
      due_at = case when w.touches = p_touches then clock_timestamp() + p_after else w.due_at end,
      -- What came during the pass may have been a new generation, whose patience is fresh.
      lost_passes = case when p_error like 'Abandoned:%' then w.lost_passes else 0 end,
      attempts = case when p_error is null then 0 when w.touches = p_touches or w.attempts > 0 then w.attempts + 1
        else w.attempts end,
      generation = p_generation, last_error = p_error,
      failing_since = case when p_error is not null then coalesce(w.failing_since, clock_timestamp()) end,
      is_terminal = p_is_terminal and r.generation = p_generation,
      blocked_reason = p_blocked_reason, blocked_message = p_blocked_message
    where w.controller = p_controller and w.uid = p_uid
    returning w.touches <> p_touches into was_touched;
  if not p_keep_lease then
    update plumbline.pass_lease set expires_at = '-infinity' where uid = p_uid;
  end if;
  if p_report is not null or p_finalized then
    perform plumbline.write_report(r, p_controller, coalesce(p_report, '{}'), p_finalized);
  end if;
  return case when was_touched then 'again' else 'finished' end;
end
$$;

-- Ends of good passes that report nothing: the item's next time, and the lease back, for all of them in one statement. In
-- the order of uids, as all who lock several leases. Busy: a writer that stays open has the item; the others do not wait.
create function plumbline.finish_plainly(p_ends text[]) returns table (n bigint, outcome text)
language sql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with ends as materialized (
    select u.n, e.controller, e.uid, e.token, e.touches, e.generation, e.class, e."afterMs" * interval '1 millisecond' as after
    from unnest(p_ends) with ordinality u (text, n) cross join lateral jsonb_to_record(u.text::jsonb) e (
      controller text, uid uuid, token bigint, touches bigint, generation bigint, class smallint, "afterMs" float8)
  ), locked as materialized (
    select uid from (select uid from ends order by uid) e
    where pg_try_advisory_xact_lock(hashtextextended('plumbline/pass/' || uid, 0))
  ), held as materialized (
    select l.uid from locked join ends e on e.uid = locked.uid
    join plumbline.pass_lease l on l.uid = e.uid and l.fencing_token = e.token
    order by l.uid for update of l skip locked
  ), free as materialized (
    select w.uid, w.controller from held join ends e on e.uid = held.uid
    join plumbline.work_item w on w.controller = e.controller and w.uid = e.uid order by w.uid for update of w skip locked
  ), released as (
    update plumbline.pass_lease l set expires_at = '-infinity' from free where l.uid = free.uid
  ), written as (
    update plumbline.work_item w set
        class = case when w.touches = e.touches then e.class else w.class end,
        due_at = case when w.touches = e.touches then clock_timestamp() + e.after else w.due_at end,
        attempts = 0, lost_passes = 0, generation = e.generation, last_error = null, failing_since = null,
        is_terminal = false, blocked_reason = null, blocked_message = null
      from free join ends e on e.uid = free.uid and e.controller = free.controller
      where w.controller = free.controller and w.uid = free.uid
      returning e.n, w.touches <> e.touches as was_touched
  ), fenced as (
    insert into plumbline.fenced_write (uid, controller, fencing_token, deed)
    select e.uid, e.controller, e.token, 'finish' from ends e
    where exists (select from plumbline.pass_lease l where l.uid = e.uid and l.fencing_token <> e.token)
    returning uid
  )
  select e.n, case when w.n is not null then case when w.was_touched then 'again' else 'finished' end
    when e.uid in (select uid from fenced) then 'fenced'
    when exists (select from plumbline.resource o where o.uid = e.uid) then 'busy' else 'gone' end
  from ends e left join written w on w.n = e.n
$$;

-- Many ends of passes at once, each a JSON object with the arguments of finish_pass; one that is refused, or whose object a
-- writer that stays open has, is undone, and told, alone. p_plain: those that finish_plainly takes. The others come in the
-- order of uids, as all who lock several objects. Answers in the order of both, the plain ones first.
create function plumbline.finish_passes(p_plain text[], p_others text[])
returns table (outcome text, code text, message text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
  set lock_timeout = '100ms' as $$
declare
  one text;
  e jsonb;
begin
  if p_plain <> '{}' then
    return query select f.outcome, null::text, null::text from plumbline.finish_plainly(p_plain) f order by f.n;
    if p_others = '{}' then
      -- If the server loses it, the object is looked at once more.
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  foreach one in array p_others loop
    begin
      e := one::jsonb;
      outcome := plumbline.finish_pass(e ->> 'controller', (e ->> 'uid')::uuid, (e ->> 'token')::bigint,
        (e ->> 'touches')::bigint, (e ->> 'generation')::bigint, nullif(e -> 'report', 'null'), (e ->> 'finalized')::boolean,
        nullif(e -> 'events', 'null'), (e ->> 'class')::smallint, (e ->> 'afterMs')::float8 * interval '1 millisecond',
        e ->> 'error', (e ->> 'isTerminal')::boolean, e ->> 'blockedReason', e ->> 'blockedMessage',
        (e ->> 'keepLease')::boolean);
      code := null;
      message := null;
    exception
      -- What may succeed later is the whole statement's failure.
      when deadlock_detected or serialization_failure or query_canceled then raise;
      when lock_not_available then
        outcome := 'busy';
        code := null;
        message := null;
      when others then
        outcome := null;
        code := sqlstate;
        message := sqlerrm;
    end;
    return next;
  end loop;
end
$$;

-- What controllers elsewhere have said of an object.
create table plumbline.report_elsewhere (
  controller text collate "C" not null references plumbline.controller_elsewhere (name) on delete cascade,
  uid uuid not null references plumbline.resource (uid) on delete cascade,
  -- The highest that came: a lower one is of a holder that was replaced. Absent: none ever came.
  fencing_token bigint,
  observed_generation bigint,
  primary key (uid, controller)
);

-- The generation that all running controllers here and all controllers elsewhere have seen, and never less than was said
-- before. p_controller: it reports now, so it runs.
create function plumbline.observed_by_all(r plumbline.resource, p_controller text) returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
  select greatest(
    least(
      (select min(w.generation) from plumbline.work_item w join plumbline.controller c on c.name = w.controller
        where w.uid = r.uid and c.api_group = r.api_group and c.kind = r.kind
          -- Another version of the code had controllers that are not any more.
          and (c.name = p_controller or plumbline.is_running(c.last_seen_at))),
      (select min(coalesce(e.observed_generation, 0)) from plumbline.controller_elsewhere c
        left join plumbline.report_elsewhere e on e.controller = c.name and e.uid = r.uid
        where c.api_group = r.api_group and c.kind = r.kind)),
    case when jsonb_typeof(r.status -> 'observedGeneration') = 'number'
      then (r.status -> 'observedGeneration')::numeric::bigint end)
$$;

-- Last in the transaction: taking the last finalizer off removes the object, its lease and its items.
create function plumbline.write_report(r plumbline.resource, p_controller text, p_report jsonb, p_finalized boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  report jsonb := p_report;
  merged jsonb := r.status;
  blockers jsonb;
begin
  if r.deletion_timestamp is not null then
    if p_finalized then
      r.finalizers := array_remove(r.finalizers, (select c.finalizer from plumbline.controller c where c.name = p_controller));
    end if;
    blockers := plumbline.deletion_blocked(r);
    report := report || case when blockers is null
      then jsonb_build_object('removedConditions', coalesce(report -> 'removedConditions', '[]') || '["DeletionBlocked"]')
      else jsonb_build_object('conditions', coalesce(report -> 'conditions', '[]') || jsonb_build_array(blockers)) end;
  end if;
  report := jsonb_set(report, '{fields}', coalesce(report -> 'fields', '{}') || jsonb_build_object('observedGeneration',
    plumbline.observed_by_all(r, p_controller)));
  merged := plumbline.merge_status(r.status, p_controller, report);
  perform set_config('plumbline.writer', p_controller, true);
  update plumbline.resource set status = merged,
      finalizers = case when p_finalized
        then array_remove(finalizers, (select c.finalizer from plumbline.controller c where c.name = p_controller))
        else finalizers end
    where uid = r.uid;
  perform set_config('plumbline.writer', '', true);
end
$$;

create function plumbline.record_events(r plumbline.resource, p_controller text, p_events jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.object_event as e (stream, tenant, api_group, version, kind, name, uid, controller, type, reason, message)
    select s.id, r.tenant, r.api_group, r.version, r.kind, r.name, r.uid, p_controller, said.type, said.reason, said.message
    from (select distinct x ->> 'type', x ->> 'reason', left(x ->> 'message', 1024) from jsonb_array_elements(p_events) x)
      said (type, reason, message)
    join plumbline.stream s on s.tenant = r.tenant and s.closed_at is null
    on conflict (uid, controller, type, reason, message) do update set count = e.count + 1, last_at = clock_timestamp();
  delete from plumbline.object_event where id in (
    select id from plumbline.object_event where uid = r.uid order by last_at desc offset 50);
end
$$;

-- Puts the controller's finalizer on an object that is older than its controller, before anything is done for it.
create function plumbline.add_finalizer(p_controller text, p_uid uuid, p_token bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('plumbline/pass/' || p_uid, 0));
  perform from plumbline.resource where uid = p_uid for no key update;
  if not found or not plumbline.hold_lease(p_uid, p_token, p_controller, 'add finalizer') then
    return false;
  end if;
  perform set_config('plumbline.writer', p_controller, true);
  update plumbline.resource r set finalizers = finalizers || c.finalizer from plumbline.controller c
    where r.uid = p_uid and c.name = p_controller and r.deletion_timestamp is null and not c.finalizer = any (r.finalizers);
  perform set_config('plumbline.writer', '', true);
  return exists (select from plumbline.resource r join plumbline.controller c on c.name = p_controller
    where r.uid = p_uid and c.finalizer = any (r.finalizers));
end
$$;

create index resource_deleting on plumbline.resource (deletion_timestamp) where deletion_timestamp is not null;

-- Forgets what is told long enough ago.
create function plumbline.expire_object_events(p_before timestamptz) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from plumbline.object_event where last_at < p_before;
  delete from plumbline.fenced_write where at < p_before;
  -- Of controllers that are not any more; should they come back, they look at all their objects in time.
  delete from plumbline.watch_change w using plumbline.controller c
    where c.name = w.controller and c.last_seen_at < p_before;
$$;

grant execute on function plumbline.claim_passes, plumbline.renew_passes, plumbline.release_pass, plumbline.finish_passes, plumbline.add_finalizer,
  plumbline.expire_object_events to plumbline_worker;
