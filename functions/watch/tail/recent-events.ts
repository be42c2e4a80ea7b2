/**
 * The last events of one stream, for who falls a little behind its tail: bounded by count, bytes and age, and with those
 * of all other streams of the process by bytes. The events are those that feeds hold too; of its own it has no more than
 * their places.
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

/** What the recent events of all streams of a process may take. The stream without news for the longest time forgets first. */
export class RecentBudget {
  readonly #maxBytes: number;
  /** The one that had news last is the last. */
  readonly #holders = new Set<RecentEvents>();
  #bytes = 0;

  constructor(maxBytes: number = 64 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** One holds so much more, or less. */
  weigh(holder: RecentEvents, bytes: number): void {
    this.#bytes += bytes;
    if (holder.events.length === 0) this.#holders.delete(holder);
    if (bytes <= 0) return;
    this.#holders.delete(holder);
    this.#holders.add(holder);
    for (const longest of this.#holders) {
      if (this.#bytes <= this.#maxBytes) return;
      longest.forget();
    }
  }
}

export class RecentEvents implements Run {
  readonly #budget: RecentBudget;
  readonly #bounds: RecentBounds;
  #events: StreamEvent[] = [];
  #arrivedAtMs: number[] = [];
  #bytes = 0;
  #after: bigint;

  /** @param after the seq before the first event that will come. */
  constructor(after: bigint, budget: RecentBudget, bounds: RecentBounds = BOUNDS) {
    this.#after = after;
    this.#budget = budget;
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
      this.#bytes += weightOf(event);
    }
    this.#drop(this.#countOver(nowMs), totalOf(events));
  }

  /** Drops what is over a bound. */
  trim(nowMs: number): void {
    this.#drop(this.#countOver(nowMs));
  }

  /** Lets go of all; what comes next follows on it. */
  forget(): void {
    this.#drop(this.#events.length);
  }

  /** The tail goes on elsewhere: the event after this seq comes next. */
  restart(after: bigint): void {
    this.forget();
    this.#after = after;
  }

  /** How many of the oldest are too many. */
  #countOver(nowMs: number): number {
    const { maxEvents, maxBytes, maxAgeMs } = this.#bounds;
    let bytes = this.#bytes;
    let count = 0;
    for (const [index, event] of this.#events.entries()) {
      const isTooOld = (this.#arrivedAtMs[index] ?? nowMs) < nowMs - maxAgeMs;
      if (this.#events.length - index <= maxEvents && bytes <= maxBytes && !isTooOld) break;
      bytes -= weightOf(event);
      count += 1;
    }
    return count;
  }

  #drop(count: number, added = 0): void {
    const dropped = count === 0 ? 0 : totalOf(this.#events.splice(0, count));
    this.#arrivedAtMs.splice(0, count);
    this.#after += BigInt(count);
    this.#bytes -= dropped;
    if (added !== dropped) this.#budget.weigh(this, added - dropped);
  }
}

function weightOf({ size }: StreamEvent): number {
  return size + ENVELOPE_BYTES;
}

function totalOf(events: readonly StreamEvent[]): number {
  return events.reduce((sum, event) => sum + weightOf(event), 0);
}
