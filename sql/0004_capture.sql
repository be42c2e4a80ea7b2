-- Capture: every committed change of a captured table becomes one outbox record, in the writer's own transaction.
-- Records copy the row's columns as they are; the event is built from them by whoever reads it. Building jsonb here
-- would cost every writer about a tenth of its rate.
create table plumbline.outbox (
  -- No foreign key and no checks here: each would cost every writer, and only the triggers below insert.
  stream bigint not null,
  -- Drawn while the row's lock is held, from a sequence without cache. So among the ids that one snapshot sees, a later
  -- change of a row is never without the earlier one: taking the lowest visible ids, in order, is safe.
  -- Ids say nothing about the order of commits; nobody may remember one and ask for larger ones.
  id bigint generated always as identity (cache 1),
  event_id uuid not null default gen_random_uuid(),
  type text not null,
  occurred_at timestamptz not null default clock_timestamp(),
  -- A label that groups the events of one transaction. Never compared: it does not survive a logical restore.
  txid text not null default pg_current_xact_id()::text,
  traceparent text default nullif(current_setting('plumbline.traceparent', true), ''),
  uid uuid not null,
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  version text not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  resource_version bigint not null,
  generation bigint not null,
  creation_timestamp timestamptz not null,
  deletion_timestamp timestamptz,
  finalizers text[] not null,
  labels jsonb not null,
  annotations jsonb not null,
  owner_references jsonb not null,
  spec jsonb not null,
  status jsonb not null,
  -- The state before, where it differs (null: no difference). Lists use it to show the state at the log's head.
  old_resource_version bigint,
  old_generation bigint,
  old_finalizers text[],
  old_labels jsonb,
  old_annotations jsonb,
  old_owner_references jsonb,
  old_spec jsonb,
  old_status jsonb,
  deletion_requested boolean not null default false,
  primary key (stream, id)
) with (
  -- Rows live for milliseconds: vacuum by count of dead rows, at full speed.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000
);

-- Wakes resident publishers, only when one sleeps. A sleeping publisher holds this lock exclusively, so the shared try
-- fails and the writer notifies; otherwise the writer holds it to its commit, and a publisher that wants to sleep waits
-- for that and drains once more. NOTIFY takes a lock on the whole cluster at commit: 32 writers fall to a third by it.
-- It sets nothing of its own, which would cost every statement 5 µs: only the capture functions call it, and they do.
create function plumbline.wake_publishers() returns void
language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock_shared(hashtextextended('plumbline/publisher-sleeps', 0)) then
    perform pg_notify('plumbline_outbox', '');
  end if;
end
$$;

create function plumbline.capture_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.outbox (stream, type, uid, tenant, api_group, version, kind, name, resource_version, generation,
    creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status)
  select (select s.id from plumbline.stream s where s.tenant = n.tenant and s.closed_at is null),
    'ADDED', n.uid, n.tenant, n.api_group, n.version, n.kind, n.name, n.resource_version, n.generation,
    n.creation_timestamp, n.deletion_timestamp, n.finalizers, n.labels, n.annotations, n.owner_references,
    case when paths is null then n.spec else plumbline.redact('spec', n.spec, paths) end,
    case when paths is null then n.status else plumbline.redact('status', n.status, paths) end
  from new_rows n
  -- Both look-ups are kept from being turned into joins (offset 0, scalar subquery): for a statement of one row, the
  -- common one, setting up hash joins with the transition table costs 40 µs more than two index look-ups.
  cross join lateral (
    select nullif(k.redact, '{}') as paths from plumbline.kind k
    where k.api_group = n.api_group and k.kind = n.kind offset 0
  ) secret;
  if found then
    perform plumbline.wake_publishers();
  end if;
  return null;
end
$$;

create function plumbline.capture_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
  -- The plan is kept by the session, and sees no row counts: with a nested loop, chosen for a first statement of one row,
  -- a later one of 10,000 rows took 6 s instead of 0.1 s.
  set enable_nestloop = off
  -- What is switched off counts as so expensive, before version 18, that every plan would be compiled: 50 ms a statement.
  set jit = off as $$
begin
  insert into plumbline.outbox (stream, type, uid, tenant, api_group, version, kind, name, resource_version, generation,
    creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status,
    old_resource_version, old_generation, old_finalizers, old_labels, old_annotations, old_owner_references,
    old_spec, old_status, deletion_requested)
  select (select s.id from plumbline.stream s where s.tenant = n.tenant and s.closed_at is null),
    -- The last finalizer is gone: the row goes in this transaction, and this is its only event.
    case when n.deletion_timestamp is not null and n.finalizers = '{}' then 'DELETED' else 'MODIFIED' end,
    n.uid, n.tenant, n.api_group, n.version, n.kind, n.name, n.resource_version, n.generation,
    n.creation_timestamp, n.deletion_timestamp, n.finalizers, n.labels, n.annotations, n.owner_references,
    case when paths is null then n.spec else plumbline.redact('spec', n.spec, paths) end,
    case when paths is null then n.status else plumbline.redact('status', n.status, paths) end,
    o.resource_version,
    nullif(o.generation, n.generation),
    nullif(o.finalizers, n.finalizers),
    nullif(o.labels, n.labels),
    nullif(o.annotations, n.annotations),
    nullif(o.owner_references, n.owner_references),
    case when o.spec = n.spec then null when paths is null then o.spec
      else plumbline.redact('spec', o.spec, paths) end,
    case when o.status = n.status then null when paths is null then o.status
      else plumbline.redact('status', o.status, paths) end,
    o.deletion_timestamp is null and n.deletion_timestamp is not null
  from new_rows n
  join old_rows o on o.uid = n.uid
  cross join lateral (
    select nullif(k.redact, '{}') as paths from plumbline.kind k
    where k.api_group = n.api_group and k.kind = n.kind offset 0
  ) secret;
  if found then
    perform plumbline.wake_publishers();
    if exists (select from new_rows n where n.deletion_timestamp is not null and n.finalizers = '{}') then
      delete from plumbline.resource r using new_rows n
        where n.deletion_timestamp is not null and n.finalizers = '{}' and r.uid = n.uid;
    end if;
  end if;
  return null;
end
$$;

create function plumbline.capture_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.outbox (stream, type, uid, tenant, api_group, version, kind, name, resource_version, generation,
    creation_timestamp, deletion_timestamp, finalizers, labels, annotations, owner_references, spec, status,
    old_resource_version)
  select (select s.id from plumbline.stream s where s.tenant = o.tenant and s.closed_at is null),
    'DELETED', o.uid, o.tenant, o.api_group, o.version, o.kind, o.name,
    -- A deletion has a version of its own, later than all that the object had.
    nextval('plumbline.resource_version_seq'), o.generation,
    o.creation_timestamp, o.deletion_timestamp, o.finalizers, o.labels, o.annotations, o.owner_references,
    case when paths is null then o.spec else plumbline.redact('spec', o.spec, paths) end,
    case when paths is null then o.status else plumbline.redact('status', o.status, paths) end,
    o.resource_version
  from old_rows o
  cross join lateral (
    select nullif(k.redact, '{}') as paths from plumbline.kind k
    where k.api_group = o.api_group and k.kind = o.kind offset 0
  ) secret
  -- Rows in this state were deleted, and captured, by capture_update.
  where not (o.deletion_timestamp is not null and o.finalizers = '{}');
  if found then
    perform plumbline.wake_publishers();
  end if;
  return null;
end
$$;

create function plumbline.refuse_truncate() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'TRUNCATE of %.% would delete objects without events', tg_table_schema, tg_table_name
    using errcode = 'PL409', hint = 'Use DELETE: it is captured.';
end
$$;

-- Tables whose every change must become an event.
create table plumbline.captured_table (
  table_name regclass primary key
);

insert into plumbline.captured_table values ('plumbline.resource');

create trigger zz_capture_insert after insert on plumbline.resource
  referencing new table as new_rows for each statement execute function plumbline.capture_insert();
create trigger zz_capture_update after update on plumbline.resource
  referencing old table as old_rows new table as new_rows for each statement execute function plumbline.capture_update();
create trigger zz_capture_delete after delete on plumbline.resource
  referencing old table as old_rows for each statement execute function plumbline.capture_delete();
create trigger zz_refuse_truncate before truncate on plumbline.resource
  for each statement execute function plumbline.refuse_truncate();

-- Captured tables that lack one of their capture triggers, or have any trigger switched off. Empty in a healthy database.
create function plumbline.uncaptured_tables() returns table (table_name text, missing_trigger text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.table_name::text, t.name
  from plumbline.captured_table c
  cross join unnest(array['zz_capture_insert', 'zz_capture_update', 'zz_capture_delete', 'zz_refuse_truncate']) t (name)
  where not exists (
    select from pg_catalog.pg_trigger g
    where g.tgrelid = c.table_name and g.tgname = t.name and g.tgenabled in ('O', 'A'))
  union
  select c.table_name::text, g.tgname::text
  from plumbline.captured_table c join pg_catalog.pg_trigger g on g.tgrelid = c.table_name
  where not g.tgisinternal and g.tgenabled not in ('O', 'A')
$$;

grant select on plumbline.outbox to plumbline_server;
grant select on plumbline.captured_table to plumbline_worker;
grant execute on function plumbline.uncaptured_tables to plumbline_worker;
