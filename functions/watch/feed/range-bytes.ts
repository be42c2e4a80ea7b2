/** Ranges of a ring as bytes, encoded once for all watchers who are at the same place with the same selection. */

import type { CursorVector } from '#core/cursor.ts';
import type { Entry } from '#functions/watch/feed/entry.ts';
import { FrameBytes } from '#functions/watch/frames.ts';
import type { Ring } from '#functions/watch/feed/ring.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Turns } from '#functions/watch/pacing/turns.ts';

const MAX_RANGES = 64;

/** What a selection is sent of some entries. */
export interface SentRange {
  /** Index behind the last of them. */
  readonly to: number;
  /** Undefined for nothing. */
  readonly bytes: FrameBytes | undefined;
}

/** By selection first: its key can be long, and is the same text each time. */
type KnownRanges = Map<string, SentRange>;

export class RangeBytes {
  readonly #ring: Ring;
  readonly #turns: Turns;
  readonly #known = new Map<string, KnownRanges>();
  #count = 0;

  constructor(ring: Ring, turns: Turns) {
    this.#ring = ring;
    this.#turns = turns;
  }

  /**
   * The entries as a selection sees them. Ends before an entry that the selection fails on, so that what is before it is
   * sent first, and where filtering has taken the time of this turn.
   * @throws what the selection throws, on the first of the entries.
   */
  of(selection: Selection, from: number, to: number): SentRange {
    const known = this.#rangesOf(selection);
    const name = `${from}:${to}`;
    const range = known.get(name);
    if (range) return range;
    const made = this.#make(selection, from, to, (entry) => entry.frame(selection));
    if (this.#count >= MAX_RANGES) this.clear();
    this.#rangesOf(selection).set(name, made);
    this.#count += 1;
    return made;
  }

  /** The same without what a watcher has already that was ahead: its list was newer than the feed. Made for it alone. */
  behind(selection: Selection, from: number, to: number, ahead: CursorVector): SentRange {
    return this.#make(selection, from, to, (entry) =>
      entry.isKnownAt(ahead) ? undefined : entry.frame(selection, ahead),
    );
  }

  #make({ filter }: Selection, from: number, to: number, frame: (entry: Entry) => string | undefined): SentRange {
    let text = '';
    let index = from;
    try {
      for (; index < to && !(filter && index > from && this.#turns.isOver); index += 1) {
        text += frame(this.#ring.at(index)) ?? '';
      }
    } catch (error) {
      if (index === from) throw error;
    }
    return { to: index, bytes: text === '' ? undefined : new FrameBytes(text) };
  }

  /** Before new entries: most watchers have passed the old ranges. */
  clear(): void {
    this.#known.clear();
    this.#count = 0;
  }

  #rangesOf({ key }: Selection): KnownRanges {
    const known = this.#known.get(key) ?? new Map<string, SentRange>();
    this.#known.set(key, known);
    return known;
  }
}
