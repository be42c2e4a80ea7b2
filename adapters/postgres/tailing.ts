/**
 * The tails of a log that can only say "look again": each reads when its stream was named, and when any may have new
 * events, one query finds those that have.
 */

import { type EventLog, type LogPoint, pointOf, type ReadLimits, type ReadResult } from '#core/ports/event-log.ts';
import { isUnavailable } from '#core/status-error.ts';
import type { StreamEvent } from '#core/event.ts';

/**
 * Calls back soon after a stream may have new events, naming it, or with undefined when any may, and at least every few
 * seconds, until the signal aborts.
 */
export type Listen = (listener: (stream: bigint | undefined) => void, signal: AbortSignal) => void;

const READ: ReadLimits = { maxCount: 500, maxBytes: 2 * 1024 * 1024 };
const AWAY: ReadResult = { events: [], more: false };
const RETRY_MS = 250;

interface Reader {
  readonly stream: bigint;
  last: LogPoint;
  readonly bell: Bell;
}

/** Makes a log's `tail` of its other calls. Listens while anything is tailed. */
export function tailing({ ranges, read }: Pick<EventLog, 'ranges' | 'read'>, listen: Listen): EventLog['tail'] {
  const readers = new Set<Reader>();
  let listening: AbortController | undefined;
  let isLooking = false;

  return tail;

  async function* tail(
    stream: bigint,
    after: LogPoint,
    signal: AbortSignal,
  ): AsyncGenerator<readonly StreamEvent[], void, void> {
    const reader: Reader = { stream, last: after, bell: new Bell() };
    signal.addEventListener('abort', reader.bell.ring, { once: true });
    add(reader);
    try {
      while (!signal.aborted) {
        reader.bell.reset();
        const { events, more } = await readUnlessAway(reader);
        if (signal.aborted) return;
        const newest = events.at(-1);
        if (newest) {
          reader.last = pointOf(newest);
          yield events;
        }
        if (!more) await reader.bell.rung();
      }
    } finally {
      signal.removeEventListener('abort', reader.bell.ring);
      remove(reader);
    }
  }

  async function readUnlessAway({ stream, last, bell }: Reader): Promise<ReadResult> {
    try {
      return await read(stream, last, READ);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      setTimeout(bell.ring, RETRY_MS);
      return AWAY;
    }
  }

  function add(reader: Reader): void {
    readers.add(reader);
    if (listening) return;
    listening = new AbortController();
    listen((stream) => (stream === undefined ? void lookAfterAll() : wake(stream)), listening.signal);
  }

  function remove(reader: Reader): void {
    readers.delete(reader);
    if (readers.size > 0) return;
    listening?.abort();
    listening = undefined;
  }

  function wake(stream: bigint): void {
    for (const reader of readers) if (reader.stream === stream) reader.bell.ring();
  }

  /** Something may have been missed. */
  async function lookAfterAll(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      const found = await ranges([...new Set([...readers].map(({ stream }) => stream))]);
      for (const { stream, last, bell } of readers) if ((found.get(stream)?.head.seq ?? 0n) > last.seq) bell.ring();
    } catch {
      // The log is away. The next call looks again.
    } finally {
      isLooking = false;
    }
  }
}

/** Latched: a ring while nobody waits is heard by who waits next. */
class Bell {
  #isRung = false;
  #hear: (() => void) | undefined;

  readonly ring = (): void => {
    this.#isRung = true;
    this.#hear?.();
  };

  reset(): void {
    this.#isRung = false;
  }

  async rung(): Promise<void> {
    if (!this.#isRung) await new Promise<void>((resolve) => (this.#hear = resolve));
    this.#hear = undefined;
  }
}
