-- Streams whose events lie in Kafka: one topic of one partition each. What should be is decided here; the publisher makes
-- the brokers follow.

-- Which log this installation's events lie in. One row: it changes for all streams at once, in switch_log.
create table plumbline.log_choice (
  only_row boolean primary key default true check (only_row),
  log text not null default 'postgres' check (log in ('postgres', 'kafka')),
  topic_prefix text not null default 'plumbline.events.' check (topic_prefix ~ '^[a-zA-Z0-9._-]{0,100}$'),
  -- Part of every topic's name, made when the log becomes Kafka: other databases at the same brokers have streams of the
  -- same numbers.
  installation text not null default '',
  -- Which database that was. A copy of it must not go on in the same topics.
  database_identity text not null default '',
  -- Of the brokers that hold the topics. Another cluster knows none of them, which would look as if all were lost.
  cluster_id text
);
insert into plumbline.log_choice default values;

-- Every topic that there ever was. A name is never used twice: no old cursor, reader or producer can meet another log.
create table plumbline.topic (
  name text primary key,
  stream bigint not null references plumbline.stream (id),
  -- The number of the event at its first position.
  first_seq bigint not null,
  created_at timestamptz not null default clock_timestamp(),
  -- It exists at the brokers, with these settings: only then its stream is published.
  ready_at timestamptz,
  -- What the brokers know it by: another topic of its name, made when it was deleted, has another. Absent with old brokers.
  identity text,
  retention_ms bigint,
  retention_bytes bigint,
  -- The brokers do not know it any more; its stream is held until it is found again, or replaced.
  missing_since timestamptz,
  removed_at timestamptz,
  removed_reason text
);

create index topic_stream on plumbline.topic (stream);

alter table plumbline.frontier
  -- Absent: the events lie in event_log.
  add column topic text references plumbline.topic (name),
  -- The position before the oldest event that is still there.
  add column start_position bigint not null default 0;

grant select on plumbline.topic to plumbline_server;
grant select on plumbline.log_choice to plumbline_worker;

-- Readers look where their streams are; the publisher looks what is to be made.
create trigger topic_notify after insert or update or delete on plumbline.topic
  for each statement execute function plumbline.stream_notify();

-- Gives a stream its next topic, in which its numbers go on. The frontier's row is the caller's, locked.
create function plumbline.open_topic(p_stream bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  made text;
begin
  select c.topic_prefix || s.tenant || '.' || c.installation || '.' || s.id || coalesce('-' || nullif(
      (select count(*) from plumbline.topic t where t.stream = s.id), 0), '')
    into strict made
    from plumbline.log_choice c, plumbline.stream s where s.id = p_stream;
  insert into plumbline.topic (name, stream, first_seq)
    select made, p_stream, f.last_seq + 1 from plumbline.frontier f where f.stream = p_stream;
  update plumbline.frontier set topic = made where stream = p_stream;
end
$$;

create or replace function plumbline.stream_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.frontier (stream) values (new.id);
  -- Waits for a change of the log, and lets it wait: a stream is never left behind in the old one.
  if (select log from plumbline.log_choice for share) = 'kafka' then
    perform plumbline.open_topic(new.id);
  end if;
  return null;
end
$$;

-- Batches of the log in Kafka that are on their way: which records get which numbers. Committed before anything is sent,
-- and never changed after: whoever sends it again sends the same.
create table plumbline.manifest (
  stream bigint primary key references plumbline.stream (id),
  -- The fencing token: whoever completes a batch names it, and it is gone once that was done.
  id bigint generated always as identity (cache 1) unique,
  first_seq bigint not null,
  outbox_ids bigint[] not null check (cardinality(outbox_ids) > 0),
  -- Who sends it, and until when nobody else does. Two may still do so: a lease that ends before its holder does only
  -- costs a repetition.
  holder text not null,
  held_until timestamptz not null
);

grant select on plumbline.manifest to plumbline_server;

-- Ends what readers have of a stream: its numbers go on behind all that were ever given, and no cursor but one at the
-- very head can go on. The numbers of an unfinished batch may have been read already: then no cursor can.
create function plumbline.end_readers(p_stream bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.frontier where stream = p_stream for update;
  update plumbline.frontier f set last_seq = m.first_seq + cardinality(m.outbox_ids)
    from plumbline.manifest m where m.stream = p_stream and f.stream = p_stream;
  update plumbline.manifest m set first_seq = f.last_seq + 1
    from plumbline.frontier f where m.stream = p_stream and f.stream = p_stream;
  update plumbline.frontier set first_seq = last_seq + 1, start_position = last_position where stream = p_stream;
end
$$;

-- Gives a stream another topic, because the brokers lost this one. False, and nothing, when that was done already.
create function plumbline.replace_topic(p_name text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  replaced bigint;
begin
  -- As everywhere: the choice, then the frontier.
  perform from plumbline.log_choice for share;
  select stream into replaced from plumbline.frontier where topic = p_name for update;
  if not found then
    return false;
  end if;
  update plumbline.topic set removed_at = clock_timestamp(), removed_reason = p_reason where name = p_name;
  perform plumbline.end_readers(replaced);
  perform plumbline.open_topic(replaced);
  perform plumbline.report_stream(replaced, 'False', 'TopicLost', p_reason);
  return true;
end
$$;

-- Tells in the Tenant's status where its events are, and whether they can be published.
create function plumbline.report_stream(p_stream bigint, p_status text, p_reason text, p_message text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update plumbline.resource r set status = r.status || jsonb_build_object(
    'eventStream', jsonb_strip_nulls(jsonb_build_object('id', s.id::text, 'topic', f.topic)),
    'conditions', (
      select jsonb_agg(c order by c ->> 'type') from (
        select c from jsonb_array_elements(case when jsonb_typeof(r.status -> 'conditions') = 'array'
          then r.status -> 'conditions' else '[]' end) c where c ->> 'type' is distinct from 'EventStreamReady'
        union all
        select jsonb_build_object('type', 'EventStreamReady', 'status', p_status, 'reason', p_reason,
          'message', p_message, 'observedGeneration', r.generation, 'lastTransitionTime', coalesce(
            (select c ->> 'lastTransitionTime' from jsonb_array_elements(case
              when jsonb_typeof(r.status -> 'conditions') = 'array' then r.status -> 'conditions' else '[]' end) c
              where c ->> 'type' = 'EventStreamReady' and c ->> 'status' = p_status),
            to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
      ) all_conditions (c)))
  from plumbline.stream s join plumbline.frontier f on f.stream = s.id
  where s.id = p_stream and s.closed_at is null and r.tenant = 'system' and r.api_group = 'plumbline.dev'
    and r.kind = 'Tenant' and r.name = s.tenant;
end
$$;

-- What is to be done at the brokers: topics to be made, or to be given other settings, and those of tenants that are gone
-- for long enough that watchers have read their end.
create function plumbline.due_topics(p_retention_ms bigint, p_retention_bytes bigint, p_grace interval)
returns table (name text, stream bigint, deed text, retention_ms bigint, retention_bytes bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.name, t.stream, 'ensure', wanted.ms, wanted.bytes
  from plumbline.frontier f
  join plumbline.topic t on t.name = f.topic
  join plumbline.stream s on s.id = f.stream
  left join plumbline.resource r on r.tenant = 'system' and r.api_group = 'plumbline.dev' and r.kind = 'Tenant'
    and r.name = s.tenant and s.closed_at is null
  cross join lateral (
    select coalesce((r.spec #>> '{eventRetention,hours}')::bigint * 3600000, p_retention_ms) as ms,
      coalesce((r.spec #>> '{eventRetention,maxBytes}')::bigint, p_retention_bytes) as bytes
  ) wanted
  where t.removed_at is null and t.missing_since is null
    and (s.closed_at is null or exists (select from plumbline.outbox o where o.stream = s.id))
    and (t.ready_at is null or (t.retention_ms, t.retention_bytes) is distinct from (wanted.ms, wanted.bytes))
  union all
  select t.name, t.stream, 'remove', null, null
  from plumbline.topic t join plumbline.stream s on s.id = t.stream
  where t.removed_at is null and s.closed_at < clock_timestamp() - p_grace
    and not exists (select from plumbline.outbox o where o.stream = s.id)
  order by 2
$$;

create function plumbline.mark_topic_ready(
  p_name text, p_retention_ms bigint, p_retention_bytes bigint, p_identity text
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  ready plumbline.topic;
begin
  update plumbline.topic set ready_at = coalesce(ready_at, clock_timestamp()),
      retention_ms = p_retention_ms, retention_bytes = p_retention_bytes, identity = coalesce(identity, p_identity)
    where name = p_name and removed_at is null returning * into ready;
  if not found then
    return;
  end if;
  perform plumbline.report_stream(ready.stream, 'True', 'TopicReady',
    format('events are kept for %s h', p_retention_ms / 3600000) || coalesce(', or ' || p_retention_bytes || ' bytes', ''));
  perform pg_notify('plumbline_outbox', '');
end
$$;

create function plumbline.mark_topic_removed(p_name text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update plumbline.topic set removed_at = clock_timestamp(), removed_reason = 'the tenant is gone'
    where name = p_name and removed_at is null
$$;

-- Tells the tenant why its topic is not there yet.
create function plumbline.report_unready_topic(p_name text, p_reason text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  waiting bigint;
begin
  select t.stream into waiting from plumbline.topic t where name = p_name and ready_at is null and removed_at is null;
  if found then
    perform plumbline.report_stream(waiting, 'False', 'TopicPending', p_reason);
  end if;
end
$$;

-- Holds the stream of a topic that the brokers do not know; true once that was so for the given time.
create function plumbline.mark_topic_missing(p_name text, p_patience interval) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  missing plumbline.topic;
begin
  update plumbline.topic set missing_since = clock_timestamp()
    where name = p_name and ready_at is not null and removed_at is null and missing_since is null
    returning * into missing;
  if found then
    perform plumbline.report_stream(missing.stream, 'False', 'TopicMissing', 'the brokers do not know the topic');
  end if;
  return exists (
    select from plumbline.topic where name = p_name and removed_at is null
      and missing_since <= clock_timestamp() - p_patience);
end
$$;

create function plumbline.mark_topic_found(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_again plumbline.topic;
begin
  update plumbline.topic set missing_since = null
    where name = p_name and missing_since is not null and removed_at is null returning * into found_again;
  if found then
    perform plumbline.report_stream(found_again.stream, 'True', 'TopicReady', 'the topic was found again');
    perform pg_notify('plumbline_outbox', '');
  end if;
end
$$;

-- Retention has removed what lies before this position. Its number is in the index; between batches it is the next one's.
create function plumbline.advance_start(p_topic text, p_position bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  f plumbline.frontier;
  start bigint;
begin
  select * into f from plumbline.frontier where topic = p_topic for update;
  if not found then
    return;
  end if;
  select b.first_seq + greatest(0, p_position - b.first_position) into start
    from plumbline.batch b
    where b.stream = f.stream and b.first_seq + b.count > f.first_seq and b.first_position + b.count > p_position
      and b.first_seq >= (select first_seq from plumbline.topic where name = p_topic)
    order by b.first_seq limit 1;
  update plumbline.frontier set first_seq = coalesce(start, f.last_seq + 1), start_position = p_position - 1
    where stream = f.stream and first_seq < coalesce(start, f.last_seq + 1);
end
$$;

-- Tells this database from its copies: pg_dump, createdb --template and a restore elsewhere change it, a failover does not.
create function plumbline.database_identity() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (select system_identifier from pg_control_system()) || '/' || oid from pg_database where datname = current_database()
$$;

-- Moves an installation from one log to the other, all streams at once; new topics get names with this prefix, at the
-- brokers of this cluster. A copy of a database whose events lie in Kafka gets topics of its own in the same way. Nothing
-- that is captured is lost; readers at the head go on, and all others are told that what they have not read is gone.
-- Returns the number of streams; 0 when the log is that one already.
create function plumbline.switch_log(p_log text, p_topic_prefix text, p_cluster_id text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  before plumbline.log_choice;
  moved bigint;
  streams integer := 0;
begin
  select * into strict before from plumbline.log_choice for update;
  if before.log = p_log and (p_log = 'postgres' or before.database_identity = plumbline.database_identity()) then
    update plumbline.log_choice set topic_prefix = coalesce(p_topic_prefix, topic_prefix), cluster_id = p_cluster_id
      where (topic_prefix, cluster_id) is distinct from (coalesce(p_topic_prefix, topic_prefix), p_cluster_id);
    return 0;
  end if;
  update plumbline.log_choice set log = p_log, topic_prefix = coalesce(p_topic_prefix, topic_prefix),
    cluster_id = p_cluster_id, database_identity = plumbline.database_identity(),
    installation = left(replace(gen_random_uuid()::text, '-', ''), 8);
  for moved in select stream from plumbline.frontier order by stream loop
    perform plumbline.end_readers(moved);
    delete from plumbline.manifest where stream = moved;
    update plumbline.frontier set topic = null where stream = moved;
    if p_log = 'kafka' and exists (
      select from plumbline.stream s where s.id = moved
        and (s.closed_at is null or exists (select from plumbline.outbox o where o.stream = s.id))) then
      perform plumbline.open_topic(moved);
    end if;
    perform plumbline.report_stream(moved, case p_log when 'kafka' then 'False' else 'True' end, 'LogSwitched',
      'events now lie in the log ' || p_log);
    streams := streams + 1;
  end loop;
  perform pg_notify('plumbline_stream', ''), pg_notify('plumbline_outbox', '');
  return streams;
end
$$;

grant execute on function plumbline.replace_topic, plumbline.due_topics, plumbline.mark_topic_ready,
  plumbline.mark_topic_removed, plumbline.mark_topic_missing, plumbline.mark_topic_found,
  plumbline.report_unready_topic, plumbline.advance_start, plumbline.database_identity to plumbline_worker;
