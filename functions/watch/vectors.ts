/** Places in several streams, compared. */

import type { CursorVector } from '#core/cursor.ts';

/** Whether the first is further than the second in any stream that both have. */
export function isAhead(vector: CursorVector, other: CursorVector): boolean {
  return [...vector].some(([id, { seq }]) => seq > (other.get(id)?.seq ?? seq));
}

/** The later of both places, in each stream that the first has. */
export function furthest(vector: CursorVector, other: CursorVector): CursorVector {
  const latest = new Map(vector);
  for (const [id, point] of other) {
    const here = latest.get(id);
    if (here && point.seq > here.seq) latest.set(id, point);
  }
  return latest;
}
