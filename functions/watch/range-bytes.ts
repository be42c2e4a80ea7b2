/** Ranges of a ring as bytes, encoded once for all watchers who are at the same place with the same selection. */

import { FrameBytes } from '#functions/watch/frames.ts';
import type { Ring } from '#functions/watch/ring.ts';
import type { Selection } from '#functions/watch/selection.ts';

const MAX_RANGES = 64;

export class RangeBytes {
  readonly #ring: Ring;
  readonly #known = new Map<string, FrameBytes | undefined>();

  constructor(ring: Ring) {
    this.#ring = ring;
  }

  /** The entries as a selection sees them; undefined for nothing. */
  of(selection: Selection, from: number, to: number): FrameBytes | undefined {
    const key = `${from}:${to}:${selection.key}`;
    if (this.#known.has(key)) return this.#known.get(key);
    let text = '';
    for (let index = from; index < to; index += 1) text += this.#ring.at(index).frame(selection) ?? '';
    const bytes = text === '' ? undefined : new FrameBytes(text);
    if (this.#known.size >= MAX_RANGES) this.#known.clear();
    this.#known.set(key, bytes);
    return bytes;
  }

  /** Before new entries: most watchers have passed the old ranges. */
  clear(): void {
    this.#known.clear();
  }
}
