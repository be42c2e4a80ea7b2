/**
 * How many requests are answered at once for each payer: each has a connection of its own, and the database's are counted.
 * Nobody waits for a place: in workerd no request can wait for what another one does.
 */

export interface AtOnce {
  /** @returns gives the place back, however often it is called; undefined when all places of this payer are taken. */
  take(payer: string): (() => void) | undefined;
}

interface Place {
  readonly takenAtMs: number;
}

/** Code that workerd cut off gives nothing back, and it lets none go on for longer without its client. */
const LOST_AFTER_MS = 30_000;

/** @param most of one payer. */
export function createAtOnce(most: number): AtOnce {
  const taken = new Map<string, Set<Place>>();
  return {
    take(payer) {
      const places = taken.get(payer) ?? new Set();
      const place: Place = { takenAtMs: Date.now() };
      // In the order in which they were taken.
      for (const other of places) {
        if (place.takenAtMs - other.takenAtMs < LOST_AFTER_MS) break;
        places.delete(other);
      }
      if (places.size >= most) return undefined;
      taken.set(payer, places.add(place));
      return function giveBack() {
        places.delete(place);
        if (places.size === 0 && taken.get(payer) === places) taken.delete(payer);
      };
    },
  };
}
