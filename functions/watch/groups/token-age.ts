/** Until when ack tokens were sealed that open no more, since the keys change while members hold them. */

import type { CursorKey, CursorKeyRing } from '#core/ports/cursor-keys.ts';

export class TokenAge {
  /** By this process's clock, `performance.now()`: since when today's key seals. */
  #sinceMs = -Infinity;

  /**
   * Another ring is in use since this moment.
   * @returns the moment before which tokens were sealed that may open no more; undefined when all open that did.
   */
  outdatedBefore(ring: CursorKeyRing, previous: CursorKeyRing, nowMs: number): number | undefined {
    if (textOf(sealingKey(ring)) !== textOf(sealingKey(previous))) this.#sinceMs = nowMs;
    const kept = new Set(ring.keys.map(textOf));
    return previous.keys.every((key) => kept.has(textOf(key))) ? undefined : this.#sinceMs;
  }
}

function sealingKey({ keys, sealingId }: CursorKeyRing): CursorKey | undefined {
  return keys.find(({ id }) => id === sealingId);
}

/** Equal for equal keys: a file of keys can be corrected. */
function textOf(key: CursorKey | undefined): string {
  return key ? `${key.id}:${key.key.join()}` : '';
}
