/** An append on its way: what is written of it, and what comes next. */

import { unavailable } from '#adapters/kafka/errors.ts';
import { type EventRecord, toRecord } from '#adapters/kafka/records.ts';
import { type Append, type AppendedRun, TopicLost } from '#core/ports/event-writer.ts';

/** What a record takes beside its value: some 500 bytes in headers. */
const OVERHEAD_BYTES = 1_024;

export interface AppendJob {
  readonly topic: string;
  readonly expiresAtMs: number;
  /** Nobody waits for it any more. */
  readonly isSettled: boolean;
  /** Which event is the next to be written. */
  readonly nextIndex: number;
  readonly result: Promise<readonly AppendedRun[]>;
  /** The next events, as many as fit, and at least one. None when it had to be rejected. */
  next(maxBytes: number, maxCount?: number): { readonly records: readonly EventRecord[]; readonly bytes: number };
  /** They lie at this offset and behind it. Rejects when they cannot. */
  written(count: number, offset: bigint): void;
  reject(error: Error): void;
}

/** It is rejected when the time is over, whatever becomes of its events. */
export function appendJob({ topic, lastPosition, events }: Append, timeoutMs: number): AppendJob {
  const { promise: result, resolve, reject: rejectResult } = Promise.withResolvers<readonly AppendedRun[]>();
  const runs: AppendedRun[] = [];
  let lastOffset = lastPosition ?? -1n;
  let nextIndex = 0;
  let isSettled = false;
  const timer = setTimeout(() => {
    reject(
      unavailable(`topic ${topic}: ${events.length} events were not acknowledged within ${timeoutMs} ms; try again`),
    );
  }, timeoutMs);

  return {
    topic,
    expiresAtMs: performance.now() + timeoutMs,
    result,
    get isSettled() {
      return isSettled;
    },
    get nextIndex() {
      return nextIndex;
    },

    next(maxBytes, maxCount = Number.POSITIVE_INFINITY) {
      const records: EventRecord[] = [];
      let bytes = 0;
      try {
        for (const event of events.slice(nextIndex)) {
          const size = event.size + OVERHEAD_BYTES;
          if (records.length > 0 && (bytes + size > maxBytes || records.length >= maxCount)) break;
          records.push(toRecord(event));
          bytes += size;
        }
        return { records, bytes };
      } catch (error) {
        // An event that cannot be told is its append's trouble alone.
        reject(error instanceof Error ? error : new Error(String(error)));
        return { records: [], bytes: 0 };
      }
    },

    written(count, offset) {
      if (offset <= lastOffset) {
        reject(
          new TopicLost(
            'replaced',
            `topic ${topic} gave offset ${offset} to an event, but had given ${lastOffset} before: it was made anew, or has lost events`,
          ),
        );
        return;
      }
      const last = runs.at(-1);
      if (last && offset === lastOffset + 1n) runs[runs.length - 1] = { ...last, count: last.count + count };
      else runs.push({ firstPosition: offset, count });
      lastOffset = offset + BigInt(count) - 1n;
      nextIndex += count;
      if (nextIndex === events.length) settle(() => resolve(runs));
    },

    reject,
  };

  function reject(error: Error): void {
    settle(() => rejectResult(error));
  }

  function settle(how: () => void): void {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(timer);
    how();
  }
}
