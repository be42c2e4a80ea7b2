/** The event log in PostgreSQL. A position is the event's seq. Events come in by the outbox's `publishBatch` only. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { type EventRow, eventColumns, toNumberedEvent } from '#adapters/postgres/event-columns.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import { scopedToStreams } from '#adapters/postgres/scoped.ts';
import { tailing } from '#adapters/postgres/tailing.ts';
import {
  type EventLog,
  type LogPoint,
  type LogRange,
  PositionExpired,
  type ReadLimits,
  type ReadResult,
} from '#core/ports/event-log.ts';

const APPEND_FLOOR_MS = 1_000;

type LoggedRow = EventRow & { readonly fetched: bigint };

export function postgresEventLog(sql: Sql): EventLog {
  return {
    ranges,
    read,
    tail: tailing({ ranges, read }, (listener, signal) =>
      onNotification(
        sql,
        { channel: 'plumbline_event_log', floorMs: APPEND_FLOOR_MS },
        (payload) => listener(payload === undefined ? undefined : BigInt(payload)),
        signal,
      ),
    ),
  };

  async function ranges(streams: readonly bigint[]): Promise<ReadonlyMap<bigint, LogRange>> {
    return guarded('event log', async () => {
      const rows = await sql<{ stream: bigint; firstSeq: bigint; lastSeq: bigint; lastPosition: bigint }[]>`
        select stream, first_seq as "firstSeq", last_seq as "lastSeq", last_position as "lastPosition"
        from plumbline.frontier where stream = any (${streams.map(String)}::bigint[])`;
      return new Map(
        rows.map(({ stream, firstSeq, lastSeq, lastPosition }) => [
          stream,
          { start: pointAt(firstSeq - 1n), head: { seq: lastSeq, position: lastPosition }, assigned: lastSeq },
        ]),
      );
    });
  }

  async function read(stream: bigint, after: LogPoint, limits: ReadLimits): Promise<ReadResult> {
    return guarded('event log', async () => {
      const rows = await scopedToStreams(sql, [stream])<LoggedRow[]>`
        select ${eventColumns(sql)}, r.seq, r.fetched
        from (
          select e.*, sum(e.bytes) over (order by e.seq) as running_bytes,
            count(*) over () as fetched
          from (
            select * from plumbline.event_log where stream = ${String(stream)}::bigint and seq > ${String(after.seq)}::bigint
            order by seq limit ${limits.maxCount}
          ) e
        ) r
        where r.running_bytes <= ${limits.maxBytes} or r.seq = ${String(after.seq + 1n)}::bigint
        order by r.seq`;
      if (rows[0]?.seq !== after.seq + 1n) await assertNotExpired(stream, after);
      const fetched = Number(rows[0]?.fetched ?? 0n);
      return {
        events: rows.map((row) => Object.assign(toNumberedEvent(stream, row), { position: row.seq })),
        more: fetched > rows.length || fetched === limits.maxCount,
      };
    });
  }

  /** Nothing behind the point: either it is the head, or what followed was dropped. */
  async function assertNotExpired(stream: bigint, after: LogPoint): Promise<void> {
    const [row] = await sql<{ firstSeq: bigint }[]>`
      select first_seq as "firstSeq" from plumbline.frontier where stream = ${String(stream)}::bigint`;
    if (row && after.seq + 1n < row.firstSeq) {
      throw new PositionExpired(stream, pointAt(row.firstSeq - 1n));
    }
  }
}

function pointAt(seq: bigint): LogPoint {
  return { seq, position: seq };
}
