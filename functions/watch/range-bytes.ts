/** Ranges of a ring as bytes, encoded once for all watchers who are at the same place with the same selection. */

import { FrameBytes } from '#functions/watch/frames.ts';
import type { Ring } from '#functions/watch/ring.ts';
import type { Selection } from '#functions/watch/selection.ts';

const MAX_RANGES = 64;

/** By selection first: its key can be long, and is the same text each time. */
type KnownRanges = Map<string, FrameBytes | undefined>;

export class RangeBytes {
  readonly #ring: Ring;
  readonly #known = new Map<string, KnownRanges>();
  #count = 0;

  constructor(ring: Ring) {
    this.#ring = ring;
  }

  /** The entries as a selection sees them; undefined for nothing. */
  of(selection: Selection, from: number, to: number): FrameBytes | undefined {
    const known = this.#rangesOf(selection);
    const range = `${from}:${to}`;
    if (known.has(range)) return known.get(range);
    let text = '';
    for (let index = from; index < to; index += 1) text += this.#ring.at(index).frame(selection) ?? '';
    const bytes = text === '' ? undefined : new FrameBytes(text);
    if (this.#count >= MAX_RANGES) this.clear();
    this.#rangesOf(selection).set(range, bytes);
    this.#count += 1;
    return bytes;
  }

  /** Before new entries: most watchers have passed the old ranges. */
  clear(): void {
    this.#known.clear();
    this.#count = 0;
  }

  #rangesOf({ key }: Selection): KnownRanges {
    const known = this.#known.get(key) ?? new Map<string, FrameBytes | undefined>();
    this.#known.set(key, known);
    return known;
  }
}
