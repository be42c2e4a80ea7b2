/** A publisher's part: the same batch again until it is acknowledged, and then the next; and what must hold after it. */

import { setTimeout as pause } from 'node:timers/promises';

import { expect } from 'vitest';
import type { NumberedEvent } from '#core/event.ts';
import type { AppendedRun, EventWriter } from '#core/ports/event-writer.ts';
import { deduplicated, readTopic } from '#test/support/kafka-events.ts';

const RETRY_MS = 200;

export interface Appended {
  readonly topic: string;
  readonly events: readonly NumberedEvent[];
  /** What was acknowledged, batch by batch. */
  readonly batches: readonly { readonly events: readonly NumberedEvent[]; readonly runs: readonly AppendedRun[] }[];
  /** What the failed attempts were told. */
  readonly failures: readonly unknown[];
}

export interface AppendAllOptions {
  readonly batchSize?: number;
  /** Called before each batch, with its number. */
  readonly beforeBatch?: (index: number) => Promise<void> | void;
}

/** Appends all events, however often it takes. */
export async function appendAll(
  writer: EventWriter,
  topic: string,
  events: readonly NumberedEvent[],
  { batchSize = 20, beforeBatch }: AppendAllOptions = {},
): Promise<Appended> {
  const batches: { events: readonly NumberedEvent[]; runs: readonly AppendedRun[] }[] = [];
  const failures: unknown[] = [];
  let lastPosition: bigint | undefined;
  for (let first = 0; first < events.length; first += batchSize) {
    await beforeBatch?.(batches.length);
    const batch = events.slice(first, first + batchSize);
    const runs = await untilAcknowledged(batch);
    const last = runs.at(-1)!;
    lastPosition = last.firstPosition + BigInt(last.count) - 1n;
    batches.push({ events: batch, runs });
  }
  return { topic, events, batches, failures };

  async function untilAcknowledged(batch: readonly NumberedEvent[]): Promise<readonly AppendedRun[]> {
    for (;;) {
      try {
        return await writer.append({ topic, lastPosition, events: batch });
      } catch (error) {
        failures.push(error);
        await pause(RETRY_MS);
      }
    }
  }
}

/**
 * Every acknowledged event lies where it was said to; readers, who take the first record of each number, get all events
 * once and in order; and no failure was of another kind than "try again".
 * @returns how many records are repetitions.
 */
export async function expectExact(brokers: readonly string[], appended: Appended): Promise<number> {
  const records = await readTopic(brokers, appended.topic);
  const byOffset = new Map(records.map((record) => [record.offset, record]));
  for (const { events, runs } of appended.batches) {
    const offsets = runs.flatMap(({ firstPosition, count }) =>
      Array.from({ length: count }, (_, index) => firstPosition + BigInt(index)),
    );
    expect(offsets.map((offset) => byOffset.get(offset)?.id)).toEqual(events.map(({ id }) => id));
  }
  expect(deduplicated(records).map(({ id }) => id)).toEqual(appended.events.map(({ id }) => id));
  for (const failure of appended.failures) expect(failure).toMatchObject({ reason: 'ServiceUnavailable' });
  return records.length - appended.events.length;
}
