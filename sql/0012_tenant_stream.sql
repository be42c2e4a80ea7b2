-- A tenant's stream through its life, as the Tenant's controller sees it: opened with the object, told of in its status,
-- and removed before the object may go.

alter table plumbline.stream
  -- Its last event was in the log by then.
  add column drained_at timestamptz,
  -- Nothing of it is left in the log.
  add column removed_at timestamptz;

alter table plumbline.topic
  -- Why it is not there yet.
  add column problem text;

-- The controller tells in the Tenant's status what it sees; what is reported here makes it look.
create or replace function plumbline.report_stream(p_stream bigint, p_status text, p_reason text, p_message text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform plumbline.touch_tenants(array(select tenant from plumbline.stream where id = p_stream), 2::smallint);
end
$$;

create or replace function plumbline.report_unready_topic(p_name text, p_reason text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  waiting bigint;
begin
  update plumbline.topic set problem = p_reason
    where name = p_name and ready_at is null and removed_at is null and problem is distinct from p_reason
    returning stream into waiting;
  if found then
    perform plumbline.report_stream(waiting, 'False', 'TopicPending', p_reason);
  end if;
end
$$;

create function plumbline.quarantine_touch() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform plumbline.touch_tenants(array(
    select tenant from plumbline.stream where id = case tg_op when 'DELETE' then old.stream else new.stream end), 2::smallint);
  return null;
end
$$;

create trigger quarantine_touch after insert or delete on plumbline.quarantine
  for each row execute function plumbline.quarantine_touch();

-- What is known of a tenant's newest stream. The Tenant object outlives it, so it belongs to no other incarnation.
create function plumbline.tenant_stream(p_tenant text) returns table (
  stream bigint, log text, topic text, topics text[], is_topic_ready boolean, is_topic_missing boolean, problem text,
  retention_ms bigint, retention_bytes bigint, opened_at timestamptz, is_closed boolean, is_removed boolean,
  unpublished bigint, quarantine text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.id, case when f.topic is null then 'postgres' else 'kafka' end, f.topic,
    array(select t.name from plumbline.topic t where t.stream = s.id order by t.created_at), t.ready_at is not null,
    t.missing_since is not null, t.problem, t.retention_ms, t.retention_bytes,
    s.created_at, s.closed_at is not null, s.removed_at is not null,
    (select count(*) from (select from plumbline.outbox o where o.stream = s.id limit 10000) o), q.reason
  from plumbline.stream s join plumbline.frontier f on f.stream = s.id
  left join plumbline.topic t on t.name = f.topic left join plumbline.quarantine q on q.stream = s.id
  where s.tenant = p_tenant order by s.id desc limit 1
$$;

-- What lives in a tenant, by kind.
create function plumbline.tenant_objects(p_tenant text) returns table (kind text, count bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.plural || '.' || k.api_group, count(*) from plumbline.resource r
  join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
  where r.tenant = p_tenant group by 1 order by 1
$$;

-- Fences the incarnation: no event will be added after those that the outbox holds. False while an object is left.
create function plumbline.close_stream(p_tenant text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform plumbline.assert_read_committed('closing a stream');
  -- Waits for creates in flight, and they wait for it.
  perform from plumbline.stream where tenant = p_tenant and closed_at is null for update;
  if exists (select from plumbline.resource where tenant = p_tenant) then
    return false;
  end if;
  update plumbline.stream set closed_at = clock_timestamp()
    where tenant = p_tenant and closed_at is null and closing_at is not null;
  return true;
end
$$;

-- Notes that all of it is in the log, or gives up what is not. Returns when it was so, null while it is not.
create function plumbline.drain_stream(p_stream bigint, p_purge boolean) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  since timestamptz;
begin
  if p_purge and exists (select from plumbline.stream where id = p_stream and closed_at is not null) then
    -- As everywhere: the frontier, then the manifest. Numbers that were given are not given again.
    perform plumbline.end_readers(p_stream);
    delete from plumbline.manifest where stream = p_stream;
    delete from plumbline.quarantine where stream = p_stream;
    delete from plumbline.outbox where stream = p_stream;
  end if;
  update plumbline.stream set drained_at = coalesce(drained_at, clock_timestamp())
    where id = p_stream and closed_at is not null and not exists (select from plumbline.outbox o where o.stream = p_stream)
    returning drained_at into since;
  return since;
end
$$;

-- Removes events of a closed stream from the log in this database, so many at a time; true when none is left.
create function plumbline.remove_stream_events(p_stream bigint, p_limit integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  removed integer;
begin
  perform from plumbline.stream where id = p_stream and closed_at is not null and drained_at is not null;
  if not found then
    raise exception 'stream % is still in use', p_stream using errcode = 'PL409';
  end if;
  -- Readers first: what they may not expect any more can go.
  update plumbline.frontier set first_seq = last_seq + 1, start_position = last_position
    where stream = p_stream and first_seq <= last_seq;
  delete from plumbline.event_log e using (
    select seq, published_at from plumbline.event_log where stream = p_stream order by seq limit p_limit
  ) first where e.stream = p_stream and e.seq = first.seq and e.published_at = first.published_at;
  get diagnostics removed = row_count;
  return removed < p_limit;
end
$$;

-- Nothing of the stream is left in the log: readers that were behind begin at its end, which is the tenant's.
create function plumbline.mark_stream_removed(p_stream bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.stream where id = p_stream and closed_at is not null and drained_at is not null;
  if not found then
    raise exception 'stream % is still in use', p_stream using errcode = 'PL409';
  end if;
  update plumbline.frontier set first_seq = last_seq + 1, start_position = last_position where stream = p_stream;
  update plumbline.topic set removed_at = coalesce(removed_at, clock_timestamp()),
    removed_reason = coalesce(removed_reason, 'the tenant is gone') where stream = p_stream;
  delete from plumbline.object_event where stream = p_stream;
  update plumbline.stream set removed_at = coalesce(removed_at, clock_timestamp()) where id = p_stream;
end
$$;

-- As before; a topic that is there has no problem any more.
create or replace function plumbline.mark_topic_ready(
  p_name text, p_retention_ms bigint, p_retention_bytes bigint, p_identity text
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  ready plumbline.topic;
begin
  update plumbline.topic set ready_at = coalesce(ready_at, clock_timestamp()), problem = null,
      retention_ms = p_retention_ms, retention_bytes = p_retention_bytes, identity = coalesce(identity, p_identity)
    where name = p_name and removed_at is null returning * into ready;
  if not found then
    return;
  end if;
  perform plumbline.report_stream(ready.stream, 'True', 'TopicReady', '');
  perform pg_notify('plumbline_outbox', '');
end
$$;

grant execute on function plumbline.tenant_stream, plumbline.tenant_objects, plumbline.close_stream, plumbline.drain_stream,
  plumbline.remove_stream_events, plumbline.mark_stream_removed to plumbline_worker;
