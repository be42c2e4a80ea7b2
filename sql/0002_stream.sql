-- Streams, their frontiers, and the leases. A stream is the event log of one incarnation of a tenant: its id is never
-- used twice, so a cursor of a deleted tenant can never be read against its successor of the same name.
create table plumbline.stream (
  id bigint generated always as identity (cache 1) primary key,
  tenant text collate "C" not null check (tenant ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  created_at timestamptz not null default clock_timestamp(),
  -- The tenant's deletion was requested: nothing new may be created or desired in it.
  closing_at timestamptz,
  -- The tenant is gone: no event will be added after those that the outbox still holds.
  closed_at timestamptz
);

create unique index stream_one_open_per_tenant on plumbline.stream (tenant) where closed_at is null;

-- The log's head and start as PostgreSQL knows them. Apart from stream, because this row changes with every batch and
-- the stream row is share-locked by creates. Half-filled pages keep the updates in place (HOT).
create table plumbline.frontier (
  stream bigint primary key references plumbline.stream (id),
  first_seq bigint not null default 1 check (first_seq >= 1),
  last_seq bigint not null default 0 check (last_seq >= first_seq - 1),
  last_position bigint not null default 0
) with (fillfactor = 50);

create function plumbline.stream_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.frontier (stream) values (new.id);
  return null;
end
$$;

create trigger stream_frontier after insert on plumbline.stream
  for each row execute function plumbline.stream_after_insert();

-- Watchers follow the set of streams. Streams change rarely, so NOTIFY's global commit lock does not matter here.
create function plumbline.stream_notify() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_notify('plumbline_stream', '');
  return null;
end
$$;

create trigger stream_notify after insert or update or delete on plumbline.stream
  for each statement execute function plumbline.stream_notify();

-- The built-in tenant that owns cluster-scoped objects.
insert into plumbline.stream (tenant) values ('system');

grant select on plumbline.stream, plumbline.frontier to plumbline_server;

-- Exclusive rights for a time. The fencing token rises with every acquisition; whoever writes under a lease compares it.
create table plumbline.lease (
  key text primary key,
  holder text not null,
  fencing_token bigint not null,
  expires_at timestamptz not null
);

-- Takes the lease and returns its new fencing token, or null when another holder has it. The advisory lock keeps two
-- contenders from queueing on the row; it ends with this transaction, so it works through a transaction pooler.
create function plumbline.acquire_lease(p_key text, p_holder text, p_duration interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  token bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('plumbline/lease/' || p_key, 0)) then
    return null;
  end if;
  insert into plumbline.lease as l (key, holder, fencing_token, expires_at)
    values (p_key, p_holder, 1, clock_timestamp() + p_duration)
    on conflict (key) do update
      set holder = excluded.holder, fencing_token = l.fencing_token + 1, expires_at = excluded.expires_at
      where l.expires_at <= clock_timestamp() or l.holder = excluded.holder
    returning l.fencing_token into token;
  return token;
end
$$;

-- Extends a lease that is still held; false when it was lost.
create function plumbline.renew_lease(p_key text, p_token bigint, p_duration interval) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update plumbline.lease set expires_at = clock_timestamp() + p_duration
    where key = p_key and fencing_token = p_token and expires_at > clock_timestamp();
  return found;
end
$$;

-- Gives a lease back; false when it was lost already.
create function plumbline.release_lease(p_key text, p_token bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update plumbline.lease set expires_at = clock_timestamp()
    where key = p_key and fencing_token = p_token and expires_at > clock_timestamp();
  return found;
end
$$;

grant select on plumbline.lease to plumbline_worker;
grant execute on function plumbline.acquire_lease, plumbline.renew_lease, plumbline.release_lease to plumbline_worker;
