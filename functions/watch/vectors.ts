/** Places in several streams: compared, merged and changed. Vectors are shared by many watchers, so a change is a copy. */

import type { CursorVector } from '#core/cursor.ts';
import type { LogPoint } from '#core/ports/event-log.ts';

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

/** The streams that only the first has. */
export function missingIn(vector: CursorVector, other: CursorVector): readonly bigint[] {
  return [...vector.keys()].filter((id) => !other.has(id));
}

export function withPoint(vector: CursorVector, stream: bigint, point: LogPoint): CursorVector {
  return new Map(vector).set(stream, point);
}

export function withoutStream(vector: CursorVector, stream: bigint): CursorVector {
  const rest = new Map(vector);
  rest.delete(stream);
  return rest;
}
