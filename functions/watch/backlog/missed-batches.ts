/**
 * Frames behind the ring, for all who need the same ones: after a restart thousands come back at the same cursor. Read and
 * encoded once, and kept for a while. What lies in the log never changes, so nothing here becomes wrong.
 */

import type { LogPoint } from '#core/ports/event-log.ts';
import type { FrameBytes } from '#functions/watch/frames.ts';

/** A part of a stream. */
export interface Batch {
  /** Behind its last event; undefined when there is nothing yet, which is not kept. */
  readonly end: LogPoint | undefined;
  /** Undefined: nothing in it is for the selection. */
  readonly bytes: FrameBytes | undefined;
}

interface Kept {
  readonly batch: Promise<Batch>;
  byteLength: number;
}

/** As plain bytes and as a chunk. */
const FORMS = 2;
/** Sealing 250 cursors takes 9 ms: also a batch without a frame is worth its place. */
const LEAST_BYTES = 1_024;

export class MissedBatches {
  readonly #maxBytes: number;
  /** The one asked for last is the last. */
  readonly #kept = new Map<string, Kept>();
  readonly #namesOfFeeds = new WeakMap<object, number>();
  #feeds = 0;
  #byteLength = 0;

  constructor(maxBytes: number = 16 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
  }

  /** What was made before for this feed and key, or is being made; else what `make` gives. What fails is not kept. */
  of(feed: object, key: string, make: () => Promise<Batch>): Promise<Batch> {
    const name = `${this.#nameOf(feed)} ${key}`;
    const known = this.#kept.get(name);
    if (known) {
      this.#kept.delete(name);
      this.#kept.set(name, known);
      return known.batch;
    }
    const kept: Kept = { batch: make(), byteLength: 0 };
    this.#kept.set(name, kept);
    kept.batch.then(
      ({ end, bytes }) => {
        if (end) this.#weigh(kept, LEAST_BYTES + FORMS * (bytes?.plain.byteLength ?? 0));
        else this.#drop(name, kept);
      },
      () => this.#drop(name, kept),
    );
    return kept.batch;
  }

  #nameOf(feed: object): number {
    const known = this.#namesOfFeeds.get(feed);
    if (known !== undefined) return known;
    this.#feeds += 1;
    this.#namesOfFeeds.set(feed, this.#feeds);
    return this.#feeds;
  }

  #weigh(kept: Kept, byteLength: number): void {
    kept.byteLength = byteLength;
    this.#byteLength += byteLength;
    for (const [name, oldest] of this.#kept) {
      if (this.#byteLength <= this.#maxBytes) return;
      // Its weight is not known before it is made.
      if (oldest.byteLength > 0) this.#drop(name, oldest);
    }
  }

  #drop(name: string, kept: Kept): void {
    if (this.#kept.get(name) !== kept) return;
    this.#kept.delete(name);
    this.#byteLength -= kept.byteLength;
  }
}
