-- The event log in PostgreSQL: events as their captured columns, numbered densely per stream. Partitioned by time, so
-- that retention drops whole partitions and nothing is ever vacuumed.
create table plumbline.event_log (
  stream bigint not null,
  seq bigint not null,
  published_at timestamptz not null,
  event_id uuid not null,
  type text not null,
  occurred_at timestamptz not null,
  txid text not null,
  traceparent text,
  uid uuid not null,
  tenant text not null,
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
  status jsonb not null,
  -- What its documents weigh, for readers that bound their batches.
  bytes bigint not null,
  -- The labels before, when they changed: a watcher with a selector must know whether the object left it.
  old_labels jsonb,
  primary key (stream, seq, published_at)
) partition by range (published_at);

-- The log's index: one row per published batch. Ids are in commit order over all streams.
create table plumbline.batch (
  id bigint primary key,
  stream bigint not null references plumbline.stream (id),
  first_seq bigint not null,
  first_position bigint not null,
  count integer not null check (count > 0),
  resource_versions bigint[] not null
);

create index batch_stream on plumbline.batch (stream, first_seq);
create sequence plumbline.batch_id_seq as bigint cache 1;

-- Records that cannot be published. Each holds its stream, visibly, until an operator retries or skips it.
create table plumbline.quarantine (
  stream bigint primary key references plumbline.stream (id),
  outbox_id bigint not null,
  reason text not null,
  since timestamptz not null default clock_timestamp()
);

-- Records that an operator skipped: the whole record, who, and why.
create table plumbline.skipped_record (
  stream bigint not null,
  outbox_id bigint not null,
  record jsonb not null,
  reason text not null,
  skipped_by text not null default session_user,
  skipped_at timestamptz not null default clock_timestamp(),
  primary key (stream, outbox_id)
);

grant select on plumbline.event_log, plumbline.quarantine to plumbline_server;
grant select on plumbline.batch, plumbline.skipped_record to plumbline_worker;

-- What a document weighs when it is read, in bytes. Compressed ones are measured unpacked: they decide the memory of
-- whoever reads a batch.
create function plumbline.document_bytes(document jsonb) returns bigint
language sql stable
return case when pg_column_compression(document) is null then pg_column_size(document)::bigint
  else octet_length(document::text)::bigint end;

-- Makes the daily partitions from today on. Run at start and by every scheduled maintenance.
create function plumbline.ensure_event_log_partitions(p_days integer) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
  -- It locks the log for all: behind one long reader, everyone would queue for as long as it waits.
  set lock_timeout = '1s' as $$
declare
  day date;
  -- The transaction's time, as in published_at.
  today constant date := (now() at time zone 'UTC')::date;
begin
  for day in select today + n from generate_series(0, p_days) n loop
    if to_regclass('plumbline.event_log_' || to_char(day, 'YYYYMMDD')) is null then
      perform pg_advisory_xact_lock(hashtextextended('plumbline/partitions', 0));
      execute format('create table if not exists plumbline.%I partition of plumbline.event_log for values from (%L) to (%L)',
        'event_log_' || to_char(day, 'YYYYMMDD'), day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    end if;
  end loop;
end
$$;

-- Moves the next batch of one stream from the outbox to the log, all or nothing, in one transaction of its own:
-- exactly once, whoever dies when. Returns how it went and how many events were moved.
--   published    the batch is in the log
--   idle         nothing to publish
--   busy         another publisher has the stream at this moment
--   held         a quarantined record holds the stream
--   quarantined  the next record is too large: it holds the stream from now on
-- The right to publish is an advisory lock with the life of this transaction: no lease can outlive its holder, and a
-- process that is frozen holds nothing. It is taken in a statement of its own, before the one that reads the records:
-- their snapshot must be younger than the commit of the batch before.
create function plumbline.publish_batch(
  p_stream bigint, p_max_count integer, p_max_bytes bigint, p_max_record_bytes bigint,
  out outcome text, out published integer, out last_seq bigint
) language plpgsql security definer set search_path = pg_catalog, pg_temp
  -- A plan that was made while the outbox was empty must not scan it when it is full.
  set enable_seqscan = off
  set jit = off as $$
declare
  ids bigint[];
  head_id bigint;
  head_bytes bigint;
  head_seq bigint;
begin
  published := 0;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'publish_batch needs READ COMMITTED; an older snapshot would publish records again';
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended('plumbline/publish/' || p_stream, 0)) then
    outcome := 'busy';
    return;
  end if;
  if exists (select from plumbline.quarantine where stream = p_stream) then
    outcome := 'held';
    return;
  end if;
  -- One statement, one snapshot: the lowest visible ids, bounded by count and bytes, never less than one.
  select array_agg(id order by id) filter (where n = 1 or running_bytes <= p_max_bytes),
      min(id), min(bytes) filter (where n = 1)
    into ids, head_id, head_bytes
  from (
    select id, bytes, row_number() over (order by id) as n, sum(bytes) over (order by id) as running_bytes
    from (
      select id, plumbline.document_bytes(spec) + plumbline.document_bytes(status)
          + plumbline.document_bytes(annotations) + plumbline.document_bytes(labels) as bytes
      from plumbline.outbox where stream = p_stream order by id limit p_max_count
    ) next
  ) measured;
  if ids is null then
    outcome := 'idle';
    return;
  end if;
  if head_bytes > p_max_record_bytes then
    insert into plumbline.quarantine (stream, outbox_id, reason)
      values (p_stream, head_id, format('the object has %s bytes; an event may have %s', head_bytes, p_max_record_bytes));
    outcome := 'quarantined';
    return;
  end if;
  -- Maintenance makes partitions days ahead; a machine that slept for longer makes its own.
  if to_regclass('plumbline.event_log_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')) is null then
    perform plumbline.ensure_event_log_partitions(1);
  end if;
  -- In the order in which retention locks: the log, then the frontier.
  lock table only plumbline.event_log in row exclusive mode;
  select f.last_seq into strict head_seq from plumbline.frontier f where stream = p_stream for update;
  with moved as (
    delete from plumbline.outbox where stream = p_stream and id = any (ids) returning *
  )
  insert into plumbline.event_log (stream, seq, published_at, event_id, type, occurred_at, txid, traceparent, uid,
    tenant, api_group, version, kind, name, resource_version, generation, creation_timestamp, deletion_timestamp,
    finalizers, labels, annotations, owner_references, spec, status, bytes, old_labels)
  select stream, head_seq + row_number() over (order by id), now(), event_id, type, occurred_at, txid, traceparent, uid,
    tenant, api_group, version, kind, name, resource_version, generation, creation_timestamp, deletion_timestamp,
    finalizers, labels, annotations, owner_references, spec, status,
    plumbline.document_bytes(spec) + plumbline.document_bytes(status)
      + plumbline.document_bytes(annotations) + plumbline.document_bytes(labels),
    old_labels
  from moved;
  get diagnostics published = row_count;
  if published <> cardinality(ids) then
    raise exception 'stream %: % of % records were moved; two publishers are at work', p_stream, published, cardinality(ids);
  end if;
  last_seq := head_seq + published;
  update plumbline.frontier f set last_seq = publish_batch.last_seq, last_position = publish_batch.last_seq
    where f.stream = p_stream and f.last_seq = head_seq;
  -- Held to the commit, so that batch ids are in commit order over all streams.
  perform pg_advisory_xact_lock(hashtextextended('plumbline/batch-order', 0));
  insert into plumbline.batch (id, stream, first_seq, first_position, count, resource_versions)
    select nextval('plumbline.batch_id_seq'), p_stream, head_seq + 1, head_seq + 1, published,
      array_agg(resource_version order by seq)
    from plumbline.event_log where stream = p_stream and seq > head_seq and seq <= publish_batch.last_seq;
  perform pg_notify('plumbline_event_log', p_stream::text);
  outcome := 'published';
end
$$;

-- Streams with records to publish, held ones left out. A loose index scan: its cost is per stream, not per record.
create function plumbline.pending_streams() returns setof bigint
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with recursive pending as (
    (select stream from plumbline.outbox order by stream limit 1)
    union all
    select (select o.stream from plumbline.outbox o where o.stream > p.stream order by o.stream limit 1)
    from pending p where p.stream is not null
  )
  select stream from pending where stream is not null
    and not exists (select from plumbline.quarantine q where q.stream = pending.stream)
$$;

-- Quarantines the next record of a stream, after publishing it alone has failed.
create function plumbline.quarantine_head(p_stream bigint, p_reason text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into plumbline.quarantine (stream, outbox_id, reason)
    select p_stream, min(id), p_reason from plumbline.outbox where stream = p_stream having min(id) is not null
    on conflict (stream) do nothing
$$;

-- For operators: lets the stream go on with the same record; true when the stream was held.
create function plumbline.quarantine_retry(p_stream bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  held plumbline.quarantine;
begin
  delete from plumbline.quarantine where stream = p_stream returning * into held;
  perform pg_notify('plumbline_outbox', '');
  return held.stream is not null;
end
$$;

-- For operators: leaves the record out of the log, keeps it in skipped_record with the reason, lets the stream go on.
create function plumbline.quarantine_skip(p_stream bigint, p_reason text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  held plumbline.quarantine;
begin
  delete from plumbline.quarantine where stream = p_stream returning * into held;
  if not found then
    return false;
  end if;
  with gone as (delete from plumbline.outbox where stream = p_stream and id = held.outbox_id returning *)
  insert into plumbline.skipped_record (stream, outbox_id, record, reason)
    select stream, id, to_jsonb(gone), p_reason from gone;
  perform pg_notify('plumbline_outbox', '');
  return true;
end
$$;

-- Drops the partitions whose every event is older than the given time, and moves each stream's start. Returns the number
-- of dropped partitions. Gives up when a reader holds the log for a second; the next round tries again.
create function plumbline.expire_event_log(p_before timestamptz) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
declare
  partition regclass;
  dropped integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('plumbline/partitions', 0));
  for partition in
    select i.inhrelid::regclass from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'plumbline.event_log'::regclass
      and ((right(c.relname, 8)::date + 1)::text || ' 00:00:00+00')::timestamptz <= p_before
    order by c.relname
  loop
    execute format('drop table %s', partition);
    dropped := dropped + 1;
  end loop;
  if dropped > 0 then
    -- Publishers add behind these rows only, and each takes its frontier's lock first: both see one log.
    update plumbline.frontier f set first_seq = l.start
      from (select stream, coalesce(
          (select min(e.seq) from plumbline.event_log e where e.stream = g.stream), g.last_seq + 1) as start
        from plumbline.frontier g) l
      where f.stream = l.stream and f.first_seq < l.start and f.last_seq >= l.start - 1;
  end if;
  return dropped;
end
$$;

-- Forgets batches whose events were removed, this many at most; returns how many.
create function plumbline.forget_batches(p_limit integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten integer;
begin
  delete from plumbline.batch where id in (
    select b.id from plumbline.frontier f join plumbline.batch b
      on b.stream = f.stream and b.first_seq < f.first_seq and b.first_seq + b.count <= f.first_seq
    limit p_limit);
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;

grant execute on function plumbline.publish_batch, plumbline.pending_streams, plumbline.quarantine_head,
  plumbline.ensure_event_log_partitions, plumbline.expire_event_log, plumbline.forget_batches, plumbline.document_bytes to plumbline_worker;
