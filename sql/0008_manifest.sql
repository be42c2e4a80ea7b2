-- Publishing into Kafka: the manifest's first and last step. Between them no transaction is open.

-- One line of a manifest, as the publisher gets it.
create type plumbline.manifest_line as (
  outcome text,
  manifest bigint,
  topic text,
  -- Of the last published event in this topic; absent when there is none.
  last_position bigint,
  seq bigint,
  record plumbline.outbox
);

-- What a stream's next batch would hold: the lowest visible ids, bounded by count and bytes, never less than one; and the
-- first of them with its size. In one statement, so in one snapshot. All are null when there is nothing.
create function plumbline.next_records(
  p_stream bigint, p_max_count integer, p_max_bytes bigint, out ids bigint[], out head_id bigint, out head_bytes bigint
) language sql stable as $$
  select array_agg(id order by id) filter (where n = 1 or running_bytes <= p_max_bytes),
    min(id), min(bytes) filter (where n = 1)
  from (
    select id, bytes, row_number() over (order by id) as n, sum(bytes) over (order by id) as running_bytes
    from (
      select id, plumbline.document_bytes(spec) + plumbline.document_bytes(status)
          + plumbline.document_bytes(annotations) + plumbline.document_bytes(labels) as bytes
      from plumbline.outbox where stream = p_stream order by id limit p_max_count
    ) next
  ) measured
$$;

-- The next batch of a stream, one line for each record in order: an unfinished one as it was, or else a new manifest of
-- the lowest visible records. Otherwise one line that says why there is none: idle, busy, held, quarantined; see
-- publish_batch.
-- New manifests are made under an advisory lock with the life of this transaction, taken in a statement of its own: the
-- snapshot that reads the records must be younger than the commit of the batch before.
create function plumbline.begin_batch(
  p_stream bigint, p_holder text, p_lease interval, p_max_count integer, p_max_bytes bigint, p_max_record_bytes bigint
) returns setof plumbline.manifest_line
language plpgsql security definer set search_path = pg_catalog, pg_temp
  -- A plan that was made while the outbox was empty must not scan it when it is full.
  set enable_seqscan = off
  set jit = off as $$
declare
  f plumbline.frontier;
  t plumbline.topic;
  m plumbline.manifest;
  ids bigint[];
  head_id bigint;
  head_bytes bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'begin_batch needs READ COMMITTED; an older snapshot would publish records again';
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended('plumbline/publish/' || p_stream, 0)) then
    return next row('busy', null, null, null, null, null)::plumbline.manifest_line;
    return;
  end if;
  if exists (select from plumbline.quarantine where stream = p_stream) then
    return next row('held', null, null, null, null, null)::plumbline.manifest_line;
    return;
  end if;
  select * into strict f from plumbline.frontier where stream = p_stream for update;
  if f.topic is null then
    raise exception 'stream %: its events lie in this database, not in a topic', p_stream using errcode = 'PL409';
  end if;
  select * into strict t from plumbline.topic where name = f.topic;
  if t.ready_at is null or t.missing_since is not null then
    return next row('held', null, null, null, null, null)::plumbline.manifest_line;
    return;
  end if;
  select * into m from plumbline.manifest where stream = p_stream;
  if found then
    update plumbline.manifest set holder = p_holder, held_until = clock_timestamp() + p_lease
      where stream = p_stream and id = m.id and (holder = p_holder or held_until < clock_timestamp());
    if not found then
      return next row('busy', null, null, null, null, null)::plumbline.manifest_line;
      return;
    end if;
  else
    select * into ids, head_id, head_bytes from plumbline.next_records(p_stream, p_max_count, p_max_bytes);
    if ids is null then
      return next row('idle', null, null, null, null, null)::plumbline.manifest_line;
      return;
    end if;
    if head_bytes > p_max_record_bytes then
      insert into plumbline.quarantine (stream, outbox_id, reason) values (p_stream, head_id,
        format('the object has %s bytes; an event may have %s', head_bytes, p_max_record_bytes));
      return next row('quarantined', null, null, null, null, null)::plumbline.manifest_line;
      return;
    end if;
    insert into plumbline.manifest (stream, first_seq, outbox_ids, holder, held_until)
      values (p_stream, f.last_seq + 1, ids, p_holder, clock_timestamp() + p_lease) returning * into m;
  end if;
  return query
    select 'begun', m.id, f.topic, case when f.last_seq >= t.first_seq then f.last_position end,
      m.first_seq + u.n - 1, o
    from unnest(m.outbox_ids) with ordinality u (id, n)
    join plumbline.outbox o on o.stream = p_stream and o.id = u.id
    order by u.n;
end
$$;

-- Finishes a batch: its events lie in the topic, in runs of these lengths from these positions on. False when the batch
-- is finished already, or was given up with its topic.
create function plumbline.complete_batch(
  p_stream bigint, p_manifest bigint, p_topic text, p_counts bigint[], p_first_positions bigint[]
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  m plumbline.manifest;
  deleted integer;
begin
  -- As everywhere: the frontier, then the manifest.
  perform from plumbline.frontier where stream = p_stream and topic = p_topic for update;
  if not found then
    return false;
  end if;
  delete from plumbline.manifest where stream = p_stream and id = p_manifest returning * into m;
  if not found then
    return false;
  end if;
  with gone as (
    delete from plumbline.outbox where stream = p_stream and id = any (m.outbox_ids) returning id, resource_version
  ), runs as (
    select count, first_position, n, sum(count) over (order by n) - count as before
    from unnest(p_counts, p_first_positions) with ordinality r (count, first_position, n)
  ), numbered as (
    select resource_version, row_number() over (order by id) as n from gone
  ), ordered as materialized (
    -- Held to the commit, so that batch ids are in commit order over all streams.
    select pg_advisory_xact_lock(hashtextextended('plumbline/batch-order', 0))
  ), indexed as (
    insert into plumbline.batch (id, stream, first_seq, first_position, count, resource_versions)
    select nextval('plumbline.batch_id_seq'), p_stream, m.first_seq + r.before, r.first_position, r.count::integer,
      (select array_agg(resource_version order by n) from numbered
        where numbered.n > r.before and numbered.n <= r.before + r.count)
    from ordered, runs r order by r.n
  )
  select count(*) into deleted from gone;
  if deleted <> cardinality(m.outbox_ids) or deleted <> (select sum(count) from unnest(p_counts) count) then
    raise exception 'stream %: the batch has % records, % are in the outbox, % in the log', p_stream,
      cardinality(m.outbox_ids), deleted, (select sum(count) from unnest(p_counts) count);
  end if;
  update plumbline.frontier set last_seq = m.first_seq + deleted - 1,
      last_position = p_first_positions[cardinality(p_counts)] + p_counts[cardinality(p_counts)] - 1
    where stream = p_stream and last_seq = m.first_seq - 1;
  if not found then
    raise exception 'stream %: the batch from seq % on does not follow the frontier', p_stream, m.first_seq;
  end if;
  return true;
end
$$;

-- Holds a stream because the log refuses this record of its batch. The batch stays as it is.
create function plumbline.quarantine_batch(p_stream bigint, p_manifest bigint, p_seq bigint, p_reason text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into plumbline.quarantine (stream, outbox_id, reason)
    select stream, outbox_ids[p_seq - first_seq + 1], p_reason from plumbline.manifest
    where stream = p_stream and id = p_manifest
    on conflict (stream) do nothing
$$;

-- As before, and refuses a stream whose events lie in a topic.
create or replace function plumbline.publish_batch(
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
  topic_name text;
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
  select * into ids, head_id, head_bytes from plumbline.next_records(p_stream, p_max_count, p_max_bytes);
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
  select f.last_seq, f.topic into strict head_seq, topic_name from plumbline.frontier f where stream = p_stream for update;
  if topic_name is not null then
    raise exception 'stream %: its events lie in the topic %, not here', p_stream, topic_name using errcode = 'PL409';
  end if;
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

-- As before, without streams whose topic is not there.
create or replace function plumbline.pending_streams() returns setof bigint
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with recursive pending as (
    (select stream from plumbline.outbox order by stream limit 1)
    union all
    select (select o.stream from plumbline.outbox o where o.stream > p.stream order by o.stream limit 1)
    from pending p where p.stream is not null
  )
  select stream from pending where stream is not null
    and not exists (select from plumbline.quarantine q where q.stream = pending.stream)
    and not exists (
      select from plumbline.frontier f join plumbline.topic t on t.name = f.topic
      where f.stream = pending.stream and (t.ready_at is null or t.missing_since is not null))
$$;

-- As before. A record whose number was given keeps it: it is published as SKIPPED, without the object.
create or replace function plumbline.quarantine_skip(p_stream bigint, p_reason text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  held plumbline.quarantine;
begin
  if coalesce(btrim(p_reason), '') = '' then
    raise exception 'say why the record is left out: the reason is kept with it' using errcode = 'PL422';
  end if;
  delete from plumbline.quarantine where stream = p_stream returning * into held;
  if not found then
    return false;
  end if;
  if exists (select from plumbline.manifest m where m.stream = p_stream and held.outbox_id = any (m.outbox_ids)) then
    insert into plumbline.skipped_record (stream, outbox_id, record, reason)
      select stream, id, to_jsonb(o), p_reason from plumbline.outbox o where stream = p_stream and id = held.outbox_id;
    -- Lists still show the state before it, until the number is published.
    update plumbline.outbox set type = 'SKIPPED',
        old_spec = case when old_resource_version is not null then coalesce(old_spec, spec) end, spec = '{}',
        old_status = case when old_resource_version is not null then coalesce(old_status, status) end, status = '{}',
        old_annotations = case when old_resource_version is not null then coalesce(old_annotations, annotations) end,
        annotations = '{}',
        old_labels = case when old_resource_version is not null then coalesce(old_labels, labels) end, labels = '{}',
        old_owner_references = case when old_resource_version is not null
          then coalesce(old_owner_references, owner_references) end, owner_references = '[]'
      where stream = p_stream and id = held.outbox_id;
    perform pg_notify('plumbline_outbox', '');
    return true;
  end if;
  with gone as (delete from plumbline.outbox where stream = p_stream and id = held.outbox_id returning *)
  insert into plumbline.skipped_record (stream, outbox_id, record, reason)
    select stream, id, to_jsonb(gone), p_reason from gone;
  perform pg_notify('plumbline_outbox', '');
  return true;
end
$$;

-- As before; the topics of other streams have a retention of their own.
create or replace function plumbline.expire_event_log(p_before timestamptz) returns integer
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
      where f.stream = l.stream and f.topic is null and f.first_seq < l.start and f.last_seq >= l.start - 1;
  end if;
  return dropped;
end
$$;

grant execute on function plumbline.begin_batch, plumbline.complete_batch, plumbline.quarantine_batch to plumbline_worker;
