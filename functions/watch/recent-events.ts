/**
 * The last events of one stream, for who falls a little behind its tail: bounded by count, bytes and age. The events are
 * those that feeds hold too; of its own it has no more than their places.
 */

import type { StreamEvent } from '#core/event.ts';

/** Events of one stream without a gap; the first of them is the one behind `after`. */
export interface Run {
  readonly after: bigint;
  readonly events: readonly StreamEvent[];
}

export interface RecentBounds {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

const BOUNDS: RecentBounds = { maxEvents: 2048, maxBytes: 8 * 1024 * 1024, maxAgeMs: 60_000 };
/** Beside the object. */
const ENVELOPE_BYTES = 350;

export class RecentEvents implements Run {
  readonly #bounds: RecentBounds;
  #events: StreamEvent[] = [];
  #arrivedAtMs: number[] = [];
  #bytes = 0;
  #after: bigint;

  /** @param after the seq before the first event that will come. */
  constructor(after: bigint, bounds: RecentBounds = BOUNDS) {
    this.#after = after;
    this.#bounds = bounds;
  }

  get after(): bigint {
    return this.#after;
  }

  get events(): readonly StreamEvent[] {
    return this.#events;
  }

  append(events: readonly StreamEvent[], nowMs: number): void {
    for (const event of events) {
      this.#events.push(event);
      this.#arrivedAtMs.push(nowMs);
      this.#bytes += event.size + ENVELOPE_BYTES;
    }
    this.trim(nowMs);
  }

  /** Drops what is over a bound. */
  trim(nowMs: number): void {
    let dropped = 0;
    for (const [index, event] of this.#events.entries()) {
      const isOver =
        this.#events.length - index > this.#bounds.maxEvents ||
        this.#bytes > this.#bounds.maxBytes ||
        (this.#arrivedAtMs[index] ?? nowMs) < nowMs - this.#bounds.maxAgeMs;
      if (!isOver) break;
      this.#bytes -= event.size + ENVELOPE_BYTES;
      dropped += 1;
    }
    if (dropped === 0) return;
    this.#events.splice(0, dropped);
    this.#arrivedAtMs.splice(0, dropped);
    this.#after += BigInt(dropped);
  }

  /** The tail goes on elsewhere: the event after this seq comes next. */
  restart(after: bigint): void {
    this.#events = [];
    this.#arrivedAtMs = [];
    this.#bytes = 0;
    this.#after = after;
  }
}
