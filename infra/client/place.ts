/** Where a watch is: from where the next connection goes on, and what it would repeat. */

import type { Mode } from '#infra/client/handshake.ts';

export interface Start {
  /** A cursor, `earliest`, or `now`. @default now */
  readonly from?: string | undefined;
  /** The objects as they are, each as ADDED, and then what follows. Instead of `from`. */
  readonly initial?: boolean | undefined;
}

export interface Place {
  /** What the next connection asks for. */
  readonly next: { readonly from?: string | undefined; readonly initial?: string | undefined; readonly mode: Mode };
  /** Moves on behind a frame with this cursor, or without one; with this event, or without. */
  take(cursor: string | undefined, eventId: string | undefined): void;
  /** Whether an event has come since the cursor moved last. */
  hasTaken(eventId: string | undefined): boolean;
}

export function createPlace({ from, initial = false }: Start): Place {
  let cursor: string | undefined;
  // Events that have come since the cursor moved last: a connection from that cursor begins with them.
  const taken = new Set<string>();

  return {
    get next(): Place['next'] {
      if (cursor !== undefined) return { from: cursor, mode: 'resume' };
      if (initial) return { from, initial: 'true', mode: 'initial' };
      return { from, mode: from === undefined || from === 'now' ? 'live' : 'resume' };
    },
    take(next, eventId) {
      if (next !== undefined) {
        cursor = next;
        taken.clear();
        // The initial state comes whole each time, whatever of it has come before.
      } else if (cursor !== undefined && eventId !== undefined) taken.add(eventId);
    },
    hasTaken: (eventId) => eventId !== undefined && taken.has(eventId),
  };
}
