-- The second wall between tenants. The first is the condition of each statement; should one be forgotten, the rows of
-- other tenants are not there for it. A transaction says whom it serves:
--   set local plumbline.tenants = '{acme,globex}'   these tenants; '*' all of them; '!{acme}' all but these
--   set local plumbline.streams = '{1,2}'           the events of these streams, for who reads the log
-- Who says nothing sees nothing. Such settings end with their transaction, so they hold behind a transaction pooler.
-- It concerns plumbline_server. The owner passes, and with it the triggers and the functions that act as their owner;
-- plumbline_worker passes too.
-- Locks: each table for a moment.

-- Of sub-selects the value is taken once for a statement, not for each row.
create function plumbline.seen_tenants() returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when left(s, 1) = '{' then s::text[] end from current_setting('plumbline.tenants', true) s
$$;

create function plumbline.unseen_tenants() returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when s = '*' then '{}'::text[] when left(s, 1) = '!' then substr(s, 2)::text[] end
  from current_setting('plumbline.tenants', true) s
$$;

create function plumbline.seen_streams() returns bigint[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when left(s, 1) = '{' then s::bigint[] end from current_setting('plumbline.streams', true) s
$$;

grant execute on function plumbline.seen_tenants, plumbline.unseen_tenants, plumbline.seen_streams to plumbline_server;

-- Functions that act as their owner pass the wall: those that plumbline_server may call ask this of what they are given.
create function plumbline.sees_tenant(p_tenant text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(p_tenant = any (plumbline.seen_tenants()) or p_tenant <> all (plumbline.unseen_tenants()), false)
$$;

-- Every table with something of a tenant in it. Those without a policy of their own below are the machinery's alone.
do $$
declare
  t text;
begin
  foreach t in array array['stream', 'resource', 'outbox', 'event_log', 'object_event', 'watch_group', 'group_member',
    'group_lane', 'group_dead_letter', 'group_action', 'skipped_record', 'work_item', 'watch_change', 'touch',
    'token_block'] loop
    execute format('alter table plumbline.%I enable row level security', t);
    execute format('create policy machinery on plumbline.%I to plumbline_worker using (true) with check (true)', t);
  end loop;
end
$$;

create policy of_tenant on plumbline.resource to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));
create policy of_tenant on plumbline.stream to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));
create policy of_tenant on plumbline.outbox to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));
create policy of_tenant on plumbline.object_event to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));
create policy of_stream on plumbline.event_log to plumbline_server using (
  stream = any ((select plumbline.seen_streams())::bigint[]));

-- Who sees a tenant sees its Tenant object, and what was told about it; they belong to the tenant system.
create policy tenant_itself on plumbline.resource for select to plumbline_server using (
  tenant = 'system' and api_group = 'plumbline.dev' and kind = 'Tenant'
  and name = any ((select plumbline.seen_tenants())::text[]));
create policy tenant_itself on plumbline.object_event for select to plumbline_server using (
  tenant = 'system' and api_group = 'plumbline.dev' and kind = 'Tenant'
  and name = any ((select plumbline.seen_tenants())::text[]));
-- That it is there is no secret.
create policy system_is_there on plumbline.stream for select to plumbline_server using (tenant = 'system');

-- A group is seen by who sees all of its tenants, and with it all that hangs on it.
create policy of_tenants on plumbline.watch_group to plumbline_server using (
  (select plumbline.unseen_tenants()) = '{}'
  or (tenants <> '*' and string_to_array(tenants, ',') <@ (select plumbline.seen_tenants())));
create policy of_group on plumbline.group_member to plumbline_server using (
  exists (select from plumbline.watch_group g where g.id = watch_group));
create policy of_group on plumbline.group_lane to plumbline_server using (
  exists (select from plumbline.watch_group g where g.id = watch_group));
create policy of_group on plumbline.group_dead_letter to plumbline_server using (
  exists (select from plumbline.watch_group g where g.id = watch_group));
