/**
 * What was fetched and not taken, for the read that goes on there: a batch comes whole, however little of it is wanted, and
 * who catches up would fetch it again for each part.
 */

import type { FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import type { LogPoint } from '#core/ports/event-log.ts';

export interface Leftover {
  readonly fetched: FetchedTopic;
  /** Of the first record that was not taken. */
  readonly offset: bigint;
}

export interface Leftovers {
  /** It is behind this point. */
  keep(stream: bigint, point: LogPoint, leftover: Leftover): void;
  /** What is kept behind the point, which is not kept any longer. */
  take(stream: bigint, point: LogPoint): Leftover | undefined;
}

/** Of as many readers. */
const MAX_COUNT = 8;
const MAX_BYTES = 8 * 1024 * 1024;
/** Who comes later does not catch up. */
const KEPT_MS = 500;

export function createLeftovers(): Leftovers {
  const kept = new Map<string, Leftover>();
  let expiry: NodeJS.Timeout | undefined;

  return {
    keep(stream, point, leftover) {
      const key = keyOf(stream, point);
      kept.delete(key);
      kept.set(key, leftover);
      let bytes = 0;
      for (const { fetched } of kept.values()) bytes += fetched.batches.length;
      for (const [oldest, { fetched }] of kept) {
        if (bytes <= MAX_BYTES && kept.size <= MAX_COUNT) break;
        kept.delete(oldest);
        bytes -= fetched.batches.length;
      }
      clearTimeout(expiry);
      expiry = setTimeout(() => kept.clear(), KEPT_MS).unref();
    },

    take(stream, point) {
      const key = keyOf(stream, point);
      const leftover = kept.get(key);
      kept.delete(key);
      return leftover;
    },
  };
}

function keyOf(stream: bigint, { seq, position }: LogPoint): string {
  return `${stream}:${seq}:${position}`;
}
