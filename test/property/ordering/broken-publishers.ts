/** Publishers that are wrong, to see the checker find it: SQL that replaces their functions in a test's database. */

const EXCLUSIVE = `
  if not pg_try_advisory_xact_lock(hashtextextended('plumbline/publish/' || p_stream, 0)) then
    outcome := 'busy';
    return;
  end if;`;

/**
 * The widely copied rule: by transaction id, up to the oldest transaction that still runs. Who took its id first and
 * changed the row last comes first.
 */
export const ORDERED_BY_TRANSACTION_ID: string = publishBatch({
  lock: EXCLUSIVE,
  visible: 'o.txid::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint',
  order: 'o.txid::bigint, o.id',
});

/** Two publishers read the same records, and each gives them numbers. */
export const WITHOUT_EXCLUSION: string = publishBatch({ lock: '', visible: 'true', order: 'o.id' });

/** Into Kafka: a batch that somebody left unfinished is forgotten, and its numbers are given anew. */
export const FORGETTING_MANIFESTS: string = `
  alter function plumbline.begin_batch rename to begin_right_batch;
  create function plumbline.begin_batch(
    p_stream bigint, p_holder text, p_lease interval, p_max_count integer, p_max_bytes bigint, p_max_record_bytes bigint
  ) returns setof plumbline.manifest_line language plpgsql security definer set search_path = '' as $$
  begin
    delete from plumbline.manifest where stream = p_stream and (holder = p_holder or held_until < clock_timestamp());
    return query select * from plumbline.begin_right_batch(
      p_stream, p_holder, p_lease, p_max_count, p_max_bytes, p_max_record_bytes);
  end
  $$;`;

interface Parts {
  readonly lock: string;
  readonly visible: string;
  readonly order: string;
}

function publishBatch({ lock, visible, order }: Parts): string {
  return `
    create or replace function plumbline.publish_batch(
      p_stream bigint, p_max_count integer, p_max_bytes bigint, p_max_record_bytes bigint,
      out outcome text, out published integer, out last_seq bigint
    ) language plpgsql security definer set search_path = '' as $$
    declare
      records plumbline.outbox[];
      head bigint;
    begin
      published := 0;
      ${lock}
      select array_agg(r) into records from (
        select o from plumbline.outbox o where o.stream = p_stream and ${visible} order by ${order} limit p_max_count
      ) n (r);
      if records is null then
        outcome := 'idle';
        return;
      end if;
      select f.last_seq into strict head from plumbline.frontier f where f.stream = p_stream for update;
      delete from plumbline.outbox o where o.stream = p_stream and o.id in (select r.id from unnest(records) r);
      insert into plumbline.event_log
      select (jsonb_populate_record(null::plumbline.event_log, to_jsonb(n.o) || jsonb_build_object(
        'seq', head + n.place, 'published_at', now(), 'bytes', 0))).*
      from (select o, row_number() over (order by ${order}) as place from unnest(records) o) n;
      published := cardinality(records);
      last_seq := head + published;
      update plumbline.frontier f set last_seq = publish_batch.last_seq, last_position = publish_batch.last_seq
        where f.stream = p_stream;
      perform pg_notify('plumbline_event_log', p_stream::text);
      outcome := 'published';
    end
    $$;`;
}
