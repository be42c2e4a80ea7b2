-- Finalizers that were taken off by hand: by whom, when, why. Kept for good: what a finalizer stood for may still be there.
create table plumbline.forced_deletion (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- Of the tenant's incarnation: its successor of the same name sees nothing of it.
  stream bigint not null references plumbline.stream (id),
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  uid uuid not null,
  removed_finalizers text[] not null,
  deletion_requested_at timestamptz not null,
  done_by text not null,
  reason text not null check (reason <> '')
);

create index forced_deletion_tenant on plumbline.forced_deletion (tenant, id);

grant select on plumbline.forced_deletion to plumbline_server;

alter table plumbline.forced_deletion enable row level security;
create policy machinery on plumbline.forced_deletion to plumbline_worker using (true) with check (true);
create policy of_tenant on plumbline.forced_deletion to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));

-- Takes these finalizers off an object that is being deleted; all when they are absent. One that it has not is refused. Not orphan, which comes off by
-- itself: its dependents would go. Nothing to take off: nothing happens. Returns the object; without finalizers it is gone.
create function plumbline.force_delete(p_uid uuid, p_finalizers text[], p_by text, p_reason text)
returns setof plumbline.resource
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r plumbline.resource;
  removed text[];
  unknown text[];
begin
  select * into r from plumbline.resource where uid = p_uid and plumbline.sees_tenant(tenant) for update;
  if not found then
    return;
  elsif r.deletion_timestamp is null then
    raise exception 'it is not being deleted, so nothing holds it' using errcode = 'PL409',
      hint = 'Request its deletion first.';
  end if;
  unknown := array(select f from unnest(p_finalizers) f where f <> all (r.finalizers));
  if unknown <> '{}' then
    raise exception 'the object does not have %; it has %', array_to_string(unknown, ', '), array_to_string(r.finalizers, ', ')
      using errcode = 'PL422', column = 'finalizers', constraint = 'FieldValueNotFound';
  end if;
  removed := array(select f from unnest(r.finalizers) f where f <> 'orphan' and f = any (coalesce(p_finalizers, r.finalizers)));
  if removed = '{}' then
    return next r;
    return;
  end if;
  insert into plumbline.forced_deletion (stream, tenant, api_group, kind, name, uid, removed_finalizers,
      deletion_requested_at, done_by, reason)
    select s.id, r.tenant, r.api_group, r.kind, r.name, r.uid, removed, r.deletion_timestamp, p_by, p_reason
    from plumbline.stream s where s.tenant = r.tenant and s.closed_at is null;
  perform plumbline.record_events(r, 'force-delete', jsonb_build_array(jsonb_build_object('type', 'Warning',
    'reason', 'FinalizersRemoved', 'message', format('%s took off %s: %s', p_by, array_to_string(removed, ', '), p_reason))));
  update plumbline.resource set finalizers = array(select f from unnest(finalizers) with ordinality u (f, n)
      where f <> all (removed) order by n)
    where uid = p_uid returning * into r;
  return next r;
end
$$;

grant execute on function plumbline.force_delete to plumbline_server;
