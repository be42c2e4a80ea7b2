-- Owners and dependents. An object names its owners in metadata.ownerReferences; when the last of them is gone, it is
-- collected. Whoever changes objects notes what to look at, in the same transaction; collect() looks, in small transactions,
-- by any number of processes at once; sweep_owners() notes what nobody has noted, such as after rows were restored.

-- Objects to look at, there or gone.
create table plumbline.owner_change (
  id bigint generated always as identity primary key,
  uid uuid not null,
  -- Of its dependents, those up to this one are noted already.
  after uuid not null default '00000000-0000-0000-0000-000000000000',
  due_at timestamptz not null default '-infinity',
  -- Why it failed the last time.
  problem text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

alter table plumbline.owner_change enable row level security;
create policy machinery on plumbline.owner_change to plumbline_worker using (true) with check (true);

-- What the sweep pages through.
create index resource_owned on plumbline.resource (uid) where owner_references <> '[]';

-- p_references: what objects referred to that are gone, or refer to something else now. The owners that they kept waiting
-- may end.
create function plumbline.note_owner_changes(p_uids uuid[], p_references jsonb[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_uids = '{}' and p_references = '{}' then
    return;
  end if;
  insert into plumbline.owner_change (uid, after)
    select uid, '00000000-0000-0000-0000-000000000000' from unnest(p_uids) uid
    union all
    select distinct plumbline.owner_uid(o), 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid
      from unnest(p_references) list, jsonb_array_elements(list) o
      where o -> 'blockOwnerDeletion' = 'true' and plumbline.owner_uid(o) is not null;
  if found then
    perform plumbline.wake_reconcilers();
  end if;
end
$$;

-- Who refers to an object of this tenant; of any tenant where it is null. Cluster-scoped objects own in all tenants.
create function plumbline.dependents(p_uid uuid, p_tenant text) returns setof plumbline.resource
language sql stable as $$
  select d.* from plumbline.resource d
  where d.owner_references <> '[]' and d.owner_references @> jsonb_build_array(jsonb_build_object('uid', p_uid))
    and (p_tenant is null or p_tenant = d.tenant or p_tenant = 'system')
$$;

create function plumbline.is_foreground(r plumbline.resource) returns boolean
language sql immutable as $$
  select (r).deletion_timestamp is not null and 'foregroundDeletion' = any ((r).finalizers)
$$;

-- Who may wait for the end of an object, over any number of others: its owners, and those of each that is deleted in the
-- foreground. Looked for upwards: objects have few owners and may have thousands of dependents. So many at most, since
-- whoever makes objects decides how many there are: a chain of 3,000 that waits took 90 ms for each look at one of them.
create function plumbline.waiting_for(p_uid uuid, p_tenant text) returns setof uuid
language sql stable set search_path = pg_catalog, pg_temp set jit = off as $$
  with recursive waiting as (
    select p_uid as uid, p_tenant collate "C" as tenant
    union
    select plumbline.owner_uid(o), x.tenant from waiting w
    cross join lateral (select * from plumbline.resource r where r.uid = w.uid offset 0) x
    cross join lateral jsonb_array_elements(x.owner_references) o
    where x.tenant in (w.tenant, 'system') and plumbline.is_foreground(x) and o -> 'blockOwnerDeletion' = 'true'
  ) select w.uid from waiting w where w.uid is not null limit 500
$$;

-- Those that an owner's end has to wait for. Who waits for the owner does not block it, or neither would ever end. A cycle
-- of more than waiting_for() looks at does: it waits until somebody takes a finalizer off by hand.
create function plumbline.blocking_dependents(p_uid uuid, p_tenant text) returns setof plumbline.resource
language sql stable as $$
  select d.* from plumbline.dependents(p_uid, p_tenant) d
  where d.owner_references @> jsonb_build_array(jsonb_build_object('uid', p_uid, 'blockOwnerDeletion', true))
    and not (d.uid = p_uid
      or (plumbline.is_foreground(d) and d.uid in (select plumbline.waiting_for(p_uid, p_tenant))))
$$;

-- The owners of an object, in their order, as they are now.
--   there     it lives, or is on its way out without waiting for this one
--   waiting   it is deleted in the foreground
--   absent    there is none of this uid, kind and name in this tenant, nor cluster-scoped
--   unknown   of a kind that is not served here, or a namespaced one of a cluster-scoped object: never taken for absent
create function plumbline.owner_states(d plumbline.resource)
returns table (reference jsonb, n bigint, state text, is_misplaced boolean)
language sql stable as $$
  select e.o, e.n, case
      when k.kind is null or (d.tenant = 'system' and k.scope = 'Namespaced') then 'unknown'
      when r.uid is null then 'absent'
      when r.deletion_timestamp is not null and 'foregroundDeletion' = any (r.finalizers) then 'waiting'
      else 'there' end,
    coalesce(d.tenant = 'system' and k.scope = 'Namespaced', false)
  from jsonb_array_elements(d.owner_references) with ordinality e (o, n)
  left join plumbline.kind k on k.kind = e.o ->> 'kind' and k.api_group = case
    when e.o ->> 'apiVersion' like '%/%' then split_part(e.o ->> 'apiVersion', '/', 1) else '' end
  -- By uid alone (offset 0): a hash join would read the whole tenant for each object, 7 ms for 10,000 of them.
  left join lateral (
    select * from plumbline.resource r where r.uid = plumbline.owner_uid(e.o) offset 0
  ) r on r.tenant in (d.tenant, 'system') and r.api_group = k.api_group and r.kind = k.kind and r.name = e.o ->> 'name'
$$;

-- Notes a page of the live dependents of an object that is gone, or that waits for them.
create function plumbline.note_dependents(p_uid uuid, p_tenant text, p_after uuid) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  with page as (
    select d.uid from plumbline.dependents(p_uid, p_tenant) d
    where d.deletion_timestamp is null and d.uid > p_after order by d.uid limit 1000
  ), noted as (
    insert into plumbline.owner_change (uid) select uid from page
  )
  insert into plumbline.owner_change (uid, after)
    select p_uid, max(uid::text)::uuid from page having count(*) = 1000
$$;

-- Each of the following is true when nothing is left to do, and false when somebody holds what it needs: then it is tried
-- again. They never wait for an object.

-- An object of which an owner may be gone. Its owners are read with a lock under its own: none that is seen can go, and
-- none that is taken for gone can be there.
create function plumbline.collect_dependent(p_uid uuid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  d plumbline.resource;
  held uuid[];
  kept jsonb;
  lost bigint;
  is_awaited boolean;
  is_misplaced boolean;
  wanted text[];
begin
  select * into d from plumbline.resource where uid = p_uid for update skip locked;
  if not found then
    return not exists (select from plumbline.resource where uid = p_uid);
  elsif d.deletion_timestamp is not null or d.owner_references = '[]' then
    return true;
  end if;
  held := array(
    select r.uid from plumbline.resource r
    where r.uid in (select plumbline.owner_uid(o) from jsonb_array_elements(d.owner_references) o)
    order by r.uid for key share skip locked);
  if exists (select from plumbline.resource r
    where r.uid in (select plumbline.owner_uid(o) from jsonb_array_elements(d.owner_references) o)
      and r.uid <> all (held)) then
    return false;
  end if;
  select jsonb_agg(s.reference order by s.n) filter (where s.state in ('there', 'unknown')),
      count(*) filter (where s.state in ('absent', 'waiting')), bool_or(s.state = 'waiting'), bool_or(s.is_misplaced)
    into kept, lost, is_awaited, is_misplaced from plumbline.owner_states(d) s;
  if is_misplaced then
    perform plumbline.record_events(d, 'garbage-collector', jsonb_build_array(jsonb_build_object('type', 'Warning',
      'reason', 'OwnerRefInvalidNamespace',
      'message', 'a cluster-scoped object cannot be owned by a namespaced one: it is never collected for it')));
  end if;
  if lost = 0 then
    return true;
  elsif kept is not null then
    update plumbline.resource set owner_references = kept where uid = p_uid;
    return true;
  end if;
  wanted := d.finalizers;
  if is_awaited and not 'orphan' = any (wanted) and exists (select from plumbline.dependents(p_uid, d.tenant)) then
    wanted := plumbline.propagation_finalizers(wanted, 'Foreground');
  end if;
  if wanted = '{}' then
    delete from plumbline.resource where uid = p_uid;
  else
    update plumbline.resource set deletion_timestamp = clock_timestamp(), finalizers = wanted where uid = p_uid;
    -- It stays for a while: its owner tells so.
    if is_awaited then
      perform plumbline.report_blocked(uid, false) from unnest(held) uid;
    end if;
  end if;
  return true;
end
$$;

-- The dependents of an object that leaves them behind: they lose it as an owner, then it ends.
create function plumbline.release_dependents(r plumbline.resource) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  released integer;
begin
  with page as (
    select d.uid from plumbline.resource d
    where d.owner_references <> '[]' and d.owner_references @> jsonb_build_array(jsonb_build_object('uid', r.uid))
      and r.tenant in (d.tenant, 'system')
    order by d.uid limit 500 for update skip locked
  )
  update plumbline.resource d set owner_references = (
      select coalesce(jsonb_agg(o order by n), '[]') from jsonb_array_elements(d.owner_references) with ordinality e (o, n)
      where o ->> 'uid' is distinct from r.uid::text)
    from page where d.uid = page.uid;
  get diagnostics released = row_count;
  if exists (select from plumbline.dependents(r.uid, r.tenant)) then
    if released > 0 then
      insert into plumbline.owner_change (uid) values (r.uid);
    end if;
    return released > 0;
  end if;
  return plumbline.take_off(r.uid, 'orphan');
end
$$;

create function plumbline.take_off(p_uid uuid, p_finalizer text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.resource where uid = p_uid for update skip locked;
  if not found then
    return not exists (select from plumbline.resource where uid = p_uid);
  end if;
  update plumbline.resource set finalizers = array_remove(finalizers, p_finalizer)
    where uid = p_uid and deletion_timestamp is not null;
  perform plumbline.report_blocked(p_uid, true);
  return true;
end
$$;

create function plumbline.collect_one(p_uid uuid, p_after uuid) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  r plumbline.resource;
begin
  select * into r from plumbline.resource where uid = p_uid;
  if not found then
    perform plumbline.note_dependents(p_uid, null, p_after);
    return true;
  elsif r.deletion_timestamp is null then
    return r.owner_references = '[]' or plumbline.collect_dependent(p_uid);
  elsif 'orphan' = any (r.finalizers) then
    return plumbline.release_dependents(r);
  elsif not plumbline.is_foreground(r) then
    return true;
  end if;
  if p_after <> 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
    perform plumbline.note_dependents(p_uid, r.tenant, p_after);
  end if;
  if not exists (select from plumbline.blocking_dependents(r.uid, r.tenant)) then
    return plumbline.take_off(p_uid, 'foregroundDeletion');
  end if;
  -- Whom it waits for is told when the first of them stays; others end in milliseconds.
  if r.status @> '{"conditions":[{"type":"DeletionBlocked","status":"True"}]}' then
    perform plumbline.report_blocked(p_uid, true);
  end if;
  return true;
end
$$;

-- Looks at what was noted, as much as this, for about a second at most; how much of it is done with.
create function plumbline.collect(p_limit integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set lock_timeout = '1s' as $$
declare
  e record;
  is_done boolean;
  trouble text;
  handled integer := 0;
  -- What it has locked waits for its end, and so do the changes of others. It always does something.
  enough_at constant timestamptz := clock_timestamp() + interval '1 second';
begin
  perform plumbline.assert_read_committed('collecting');
  for e in
    with taken as materialized (
      select id, uid, after from plumbline.owner_change where due_at <= clock_timestamp()
      order by id limit p_limit for update skip locked
    ) select uid, after, array_agg(id) as ids from taken group by uid, after order by uid, after
  loop
    trouble := null;
    begin
      is_done := plumbline.collect_one(e.uid, e.after);
    exception
      when deadlock_detected or serialization_failure or query_canceled then raise;
      when lock_not_available then is_done := false;
      when others then
        is_done := false;
        trouble := sqlerrm;
    end;
    if is_done then
      delete from plumbline.owner_change where id = any (e.ids);
      handled := handled + cardinality(e.ids);
    else
      update plumbline.owner_change set problem = trouble,
          due_at = clock_timestamp() + case when trouble is null then interval '200 milliseconds' else interval '1 minute' end
        where id = any (e.ids);
    end if;
    exit when clock_timestamp() > enough_at;
  end loop;
  return handled;
end
$$;

-- Notes what should be looked at, whoever has forgotten to: one page in the order of uids. Returns the last uid of the page,
-- null behind the last.
create function plumbline.sweep_owners(p_after uuid, p_limit integer) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  last uuid;
begin
  if p_after is null then
    insert into plumbline.owner_change (uid)
      select uid from plumbline.resource r
      where deletion_timestamp is not null and finalizers && '{foregroundDeletion,orphan}'
        -- Hashed, however few the planner expected.
        and uid not in (select c.uid from plumbline.owner_change c);
  end if;
  with page as (
    select r as object, r.uid from plumbline.resource r
    where r.owner_references <> '[]' and r.uid > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
    order by r.uid limit p_limit
  ), noted as (
    insert into plumbline.owner_change (uid)
    select p.uid from page p where (p.object).deletion_timestamp is null
      and exists (select from plumbline.owner_states(p.object) s where s.state in ('absent', 'waiting') or s.is_misplaced)
  )
  select max(uid::text)::uuid into last from page;
  return last;
end
$$;

-- What a deletion waits for, as the condition DeletionBlocked: what controllers say, blocking dependents, finalizers that no
-- running controller takes off once it has lasted so long. Null: nothing of that. Its blockers are all finalizers that
-- remain, and ten dependents at most, each since when.
create function plumbline.deletion_blocked(r plumbline.resource, p_patience interval default '1 minute') returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  since constant text := to_char(r.deletion_timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
  finalizers jsonb;
  dependents jsonb := '[]';
  reasons text[];
  messages text[];
  absent text;
begin
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('finalizer', f.name, 'since', since, 'controller', c.name,
      'reason', w.blocked_reason, 'message', left(w.blocked_message, 1024))) order by f.n), '[]'),
    array_agg(w.blocked_reason order by w.blocked_reason) filter (where w.blocked_reason is not null),
    array_agg(w.controller || ': ' || w.blocked_message order by w.controller) filter (where w.blocked_reason is not null),
    string_agg(f.name || coalesce(', last seen ' || nullif(c.last_seen_at, '-infinity'), ', never seen here'), '; ' order by f.n)
      filter (where r.deletion_timestamp < clock_timestamp() - p_patience
        and not plumbline.is_running(coalesce(c.last_seen_at, '-infinity')))
    into finalizers, reasons, messages, absent
    from unnest(r.finalizers) with ordinality f (name, n)
    left join plumbline.controller c on c.finalizer = f.name and c.api_group = r.api_group and c.kind = r.kind
    left join plumbline.work_item w on w.uid = r.uid and w.controller = c.name
    where f.name not in ('foregroundDeletion', 'orphan');
  if plumbline.is_foreground(r) then
    select coalesce(jsonb_agg(jsonb_build_object('dependent', jsonb_build_object('apiVersion',
          d.api_group || '/' || d.version, 'kind', d.kind, 'name', d.name, 'uid', d.uid),
        'since', to_char(greatest(d.deletion_timestamp, r.deletion_timestamp) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        order by d.kind, d.name), '[]')
      into dependents
      from (select * from plumbline.blocking_dependents(r.uid, r.tenant) limit 11) d;
    if dependents <> '[]' then
      reasons := reasons || 'Dependents'::text;
      messages := messages || ('waits for its dependents '
        || (select string_agg(format('%s "%s"', b -> 'dependent' ->> 'kind', b -> 'dependent' ->> 'name'), ', ' order by n)
          from jsonb_array_elements(dependents) with ordinality e (b, n) where n <= 10)
        || case when jsonb_array_length(dependents) > 10 then ' and more' else '' end);
      dependents := dependents - 10;
    end if;
  end if;
  if absent is not null then
    reasons := reasons || 'NoController'::text;
    messages := messages || ('no running controller takes off: ' || absent);
  end if;
  if reasons is null then
    return null;
  end if;
  return jsonb_build_object('type', 'DeletionBlocked', 'status', 'True', 'reason', reasons[1],
    'message', left(array_to_string(messages, '; '), 32000), 'observedGeneration', r.generation,
    'blockers', finalizers || dependents);
end
$$;

-- Brings the condition of one deletion up to date. p_anew false: what it says already is kept.
create function plumbline.report_blocked(p_uid uuid, p_anew boolean, p_patience interval default '1 minute') returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  r plumbline.resource;
  blocked jsonb;
begin
  select * into r from plumbline.resource where uid = p_uid and deletion_timestamp is not null for no key update skip locked;
  if not found or (not p_anew and coalesce(r.status -> 'conditions', '[]') @> '[{"type":"DeletionBlocked","status":"True"}]') then
    return false;
  end if;
  blocked := plumbline.deletion_blocked(r, p_patience);
  if blocked is null and not coalesce(r.status -> 'conditions', '[]') @> '[{"type":"DeletionBlocked"}]' then
    return false;
  end if;
  perform set_config('plumbline.writer', 'driver', true);
  update plumbline.resource set status = plumbline.merge_status(status, '', case
      when blocked is null then '{"removedConditions":["DeletionBlocked"]}'::jsonb
      else jsonb_build_object('conditions', jsonb_build_array(blocked)) end)
    where uid = p_uid;
  perform set_config('plumbline.writer', '', true);
  return found;
end
$$;

-- The same for deletions that have lasted so long: one page, the oldest first, behind those of this time. Returns the time of
-- the last of the page, null behind the last.
create function plumbline.report_blocked_deletions(p_patience interval, p_after timestamptz, p_limit integer)
returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  waiting record;
begin
  for waiting in
    select r.uid, r.deletion_timestamp as since from plumbline.resource r
    where r.deletion_timestamp < clock_timestamp() - p_patience and r.deletion_timestamp > coalesce(p_after, '-infinity')
    order by r.deletion_timestamp fetch first p_limit rows with ties
  loop
    perform plumbline.report_blocked(waiting.uid, true, p_patience);
  end loop;
  return waiting.since;
end
$$;

grant select on plumbline.owner_change to plumbline_worker;
grant execute on function plumbline.collect, plumbline.sweep_owners, plumbline.report_blocked_deletions to plumbline_worker;
