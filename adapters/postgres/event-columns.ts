/** Captured changes as events: the columns that outbox and event log share, and what is made of them. */

import type { Fragment, Sql } from '#adapters/postgres/client.ts';
import { storedColumns } from '#adapters/postgres/resource-columns.ts';
import type { NumberedEvent } from '#core/event.ts';
import { resourceJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';

export type EventRow = ResourceRow & {
  readonly seq: bigint;
  readonly eventId: string;
  readonly type: NumberedEvent['type'];
  readonly time: Date;
  readonly txid: string;
  readonly traceparent: string | null;
  readonly oldLabels: string | null;
};

/** Of a row `r` of outbox or event log; `seq` is the caller's. */
export function eventColumns(sql: Sql): Fragment {
  return sql`${storedColumns(sql)}, r.event_id as "eventId", r.type, r.occurred_at as time, r.txid, r.traceparent,
    r.old_labels::text as "oldLabels"`;
}

/** About what an object has beside its documents. */
const METADATA_BYTES = 350;

/** The object's text is made when it is asked for: many events are read and shown to nobody. */
export function toNumberedEvent(stream: bigint, row: EventRow): NumberedEvent {
  return {
    stream,
    seq: row.seq,
    id: row.eventId,
    type: row.type,
    time: row.time,
    txid: row.txid,
    traceparent: row.traceparent,
    subject: row,
    get object() {
      return resourceJson(row);
    },
    size: METADATA_BYTES + row.spec.length + row.status.length + row.annotations.length + row.labels.length,
    labels: row.labels,
    oldLabels: row.oldLabels,
  };
}
