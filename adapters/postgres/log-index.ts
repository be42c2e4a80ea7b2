/** The index of a log in Kafka: which topic each stream has, how far it reaches, and where it begins. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import type { IndexedStream, LogIndex } from '#core/ports/log-index.ts';

const CHANGE_FLOOR_MS = 2_000;

interface IndexRow {
  readonly stream: bigint;
  readonly topic: string;
  readonly topicFirstSeq: bigint;
  readonly firstSeq: bigint;
  readonly startPosition: bigint;
  readonly lastSeq: bigint;
  readonly lastPosition: bigint;
  readonly assigned: bigint;
}

export function postgresLogIndex(sql: Sql): LogIndex {
  return {
    async streams(ids: readonly bigint[]): Promise<ReadonlyMap<bigint, IndexedStream>> {
      const rows = await guarded(
        'log index',
        () => sql<IndexRow[]>`
        select f.stream, f.topic, t.first_seq as "topicFirstSeq",
          -- With its topic, all that it held is gone.
          case when t.removed_at is null then f.first_seq else f.last_seq + 1 end as "firstSeq",
          case when t.removed_at is null then f.start_position else f.last_position end as "startPosition", f.last_seq as "lastSeq", f.last_position as "lastPosition",
          coalesce(m.first_seq + cardinality(m.outbox_ids) - 1, f.last_seq) as assigned
        from plumbline.frontier f join plumbline.topic t on t.name = f.topic
        left join plumbline.manifest m on m.stream = f.stream
        where f.stream = any (${ids.map(String)}::bigint[])`,
      );
      return new Map(rows.map((row) => [row.stream, toIndexed(row)]));
    },

    async advanceStart(topic: string, position: bigint): Promise<void> {
      await guarded('log index', () => sql`select plumbline.advance_start(${topic}, ${String(position)}::bigint)`);
    },

    onChange(listener: () => void, signal: AbortSignal): void {
      onNotification(sql, { channel: 'plumbline_stream', floorMs: CHANGE_FLOOR_MS }, listener, signal);
    },
  };
}

function toIndexed(row: IndexRow): IndexedStream {
  return {
    topic: row.topic,
    firstSeq: row.topicFirstSeq,
    start: { seq: row.firstSeq - 1n, position: row.startPosition },
    head: { seq: row.lastSeq, position: row.lastPosition },
    assigned: row.assigned,
  };
}
