/** The last entries of a feed, bounded by count, bytes and age. Watchers are places in it; who falls behind it reads the log. */

import type { Entry } from '#functions/watch/feed/entry.ts';

export interface RingBounds {
  readonly maxEntries: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

export class Ring {
  readonly #bounds: RingBounds;
  #entries: Entry[] = [];
  #bytes = 0;
  #firstIndex = 0;

  constructor(bounds: RingBounds) {
    this.#bounds = bounds;
  }

  /** Index of the oldest entry. Indices never repeat. */
  get firstIndex(): number {
    return this.#firstIndex;
  }

  /** Index behind the newest entry. */
  get endIndex(): number {
    return this.#firstIndex + this.#entries.length;
  }

  at(index: number): Entry {
    const entry = this.#entries[index - this.#firstIndex];
    if (!entry) throw new RangeError(`the ring has no entry ${index}`);
    return entry;
  }

  /** Index behind the entries from this one on that have so many bytes; at least one, if there is one. */
  rangeEnd(from: number, maxBytes: number): number {
    let to = from;
    for (let size = 0; to < this.endIndex && (size === 0 || size < maxBytes); to += 1) size += this.at(to).size;
    return to;
  }

  append(entry: Entry): void {
    this.#entries.push(entry);
    this.#bytes += entry.heldBytes;
  }

  /** Drops from the start what is over a bound; the newest entry stays. Called once per batch. */
  trim(): void {
    const oldestMs = performance.now() - this.#bounds.maxAgeMs;
    let dropped = 0;
    while (dropped < this.#entries.length - 1) {
      const entry = this.#entries[dropped];
      const isOver =
        this.#entries.length - dropped > this.#bounds.maxEntries ||
        this.#bytes > this.#bounds.maxBytes ||
        (entry !== undefined && entry.appendedAtMs < oldestMs);
      if (!isOver || entry === undefined) break;
      this.#bytes -= entry.heldBytes;
      dropped += 1;
    }
    this.#entries.splice(0, dropped);
    this.#firstIndex += dropped;
  }
}
