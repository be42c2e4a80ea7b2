/** Manifests in PostgreSQL: the outbox for a log in Kafka. Each step is one statement; see sql/0008_manifest.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { type EventRow, eventColumns, toNumberedEvent } from '#adapters/postgres/event-columns.ts';
import { MAX_RECORD_BYTES } from '#adapters/postgres/outbox.ts';
import type { AppendedRun } from '#core/ports/event-writer.ts';
import type { Manifest, Manifests } from '#core/ports/manifests.ts';
import type { BatchLimits, PublishResult } from '#core/ports/outbox.ts';

/** A batch takes milliseconds. Behind a holder that died its stream waits for so long; one that is slower is repeated. */
const HELD_MS = 5_000;

type Outcome = Exclude<PublishResult['outcome'], 'published'>;
type Line = EventRow & {
  readonly outcome: Outcome | 'begun';
  readonly manifest: bigint;
  readonly topic: string;
  readonly lastPosition: bigint | null;
};

/** @param holder names this process among all that publish. */
export function postgresManifests(sql: Sql, holder: string): Manifests {
  return {
    async begin(stream: bigint, { maxCount, maxBytes }: BatchLimits): Promise<Manifest | Outcome> {
      const lines = await guarded(
        'manifest',
        () => sql<Line[]>`
        select b.outcome, b.manifest, b.topic, b.last_position as "lastPosition", b.seq, ${eventColumns(sql)}
        from plumbline.begin_batch(${String(stream)}::bigint, ${holder}, ${HELD_MS} * interval '1 millisecond',
          ${maxCount}, ${maxBytes}, ${MAX_RECORD_BYTES}) b
        cross join lateral (select (b.record).*) r order by b.seq`,
      );
      const [first] = lines;
      if (!first) throw new Error('begin_batch returned no row');
      if (first.outcome !== 'begun') return first.outcome;
      return {
        stream,
        fencingToken: first.manifest,
        topic: first.topic,
        lastPosition: first.lastPosition ?? undefined,
        events: lines.map((line) => toNumberedEvent(stream, line)),
      };
    },

    async complete({ stream, fencingToken, topic }: Manifest, runs: readonly AppendedRun[]): Promise<boolean> {
      const [row] = await guarded(
        'manifest',
        () => sql<{ completed: boolean }[]>`
        select plumbline.complete_batch(${String(stream)}::bigint, ${String(fencingToken)}::bigint, ${topic},
          ${runs.map(({ count }) => String(count))}::bigint[], ${runs.map(({ firstPosition }) => String(firstPosition))}::bigint[])
          as completed`,
      );
      return row?.completed ?? false;
    },

    async quarantine({ stream, fencingToken, events }: Manifest, index: number, reason: string): Promise<void> {
      const seq = events[index]?.seq;
      if (seq === undefined) throw new RangeError(`the batch has ${events.length} events; there is no ${index}`);
      await guarded(
        'manifest',
        () => sql`select plumbline.quarantine_batch(${String(stream)}::bigint, ${String(fencingToken)}::bigint,
          ${String(seq)}::bigint, ${reason})`,
      );
    },
  };
}
