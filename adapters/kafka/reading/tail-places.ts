/** Tells tails where their streams' events lie: when they begin, and whenever a stream got another topic. */

import { offsetBehind } from '#adapters/kafka/reading/placing.ts';
import type { TailReader } from '#adapters/kafka/reading/tail-reader.ts';
import type { IndexedStream, LogIndex } from '#core/ports/log-index.ts';

export interface TailPlacesDeps {
  readonly index: LogIndex;
  readonly readers: ReadonlySet<TailReader>;
  /** Before it is told of another place: what is under way from the old one is not for it. */
  readonly onMoving: (reader: TailReader) => void;
  /** It has a place, or has it still. */
  readonly onPlaced: (reader: TailReader) => void;
}

export interface TailPlaces {
  /** Looks soon: for those without a place, or for all. */
  look(who: 'new' | 'all'): void;
}

const RETRY_MS = 500;

export function createTailPlaces({ index, readers, onMoving, onPlaced }: TailPlacesDeps): TailPlaces {
  let due: 'new' | 'all' | undefined;
  let isLooking = false;
  return { look };

  function look(who: 'new' | 'all'): void {
    if (due !== 'all') due = who;
    if (isLooking) return;
    isLooking = true;
    // Tails begin many at once: one query for all of them.
    setImmediate(() => void lookNow());
  }

  async function lookNow(): Promise<void> {
    while (due) {
      const who = due;
      due = undefined;
      try {
        await place([...readers].filter((reader) => who === 'all' || !reader.place));
      } catch {
        // The index is away; what is placed goes on.
        due = who;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    isLooking = false;
  }

  async function place(some: readonly TailReader[]): Promise<void> {
    if (some.length === 0) return;
    const found = await index.streams([...new Set(some.map(({ stream }) => stream))]);
    for (const reader of some) if (readers.has(reader)) settle(reader, found.get(reader.stream));
  }

  function settle(reader: TailReader, indexed: IndexedStream | undefined): void {
    if (indexed && indexed.topic === reader.place?.topic) return onPlaced(reader);
    onMoving(reader);
    reader.place = undefined;
    if (!indexed) return;
    try {
      reader.place = { topic: indexed.topic, offset: offsetBehind(reader.stream, reader.point, indexed) };
      onPlaced(reader);
    } catch (error) {
      reader.fail(error as Error);
    }
  }
}
