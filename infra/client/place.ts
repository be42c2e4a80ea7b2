/** Where a watch is: from where the next connection goes on, and what it would repeat. */

import type { Mode } from '#infra/client/stream.ts';

export interface Start {
  /** A cursor, `earliest`, or `now`. @default now */
  readonly from?: string | undefined;
  /** The objects as they are, each as ADDED, and then what follows. Instead of `from`. */
  readonly initial?: boolean | undefined;
}

export interface Place {
  /** What the next connection asks for. */
  readonly next: { readonly from?: string | undefined; readonly initial?: string | undefined; readonly mode: Mode };
  /** A connection has begun, from this cursor. */
  begin(cursor: string | undefined): void;
  /** Moves on behind a frame; false for an event that an earlier connection has brought already. */
  take(cursor: string | undefined, eventId: string | undefined): boolean;
}

export function createPlace({ from, initial = false }: Start): Place {
  let cursor: string | undefined;
  /** Events behind the cursor: a connection from it begins with them, in this order. */
  const taken = new Set<string>();
  /** Those that this connection has brought, so that its next cursor covers them. */
  const brought = new Set<string>();

  return {
    get next(): Place['next'] {
      if (cursor !== undefined) return { from: cursor, mode: 'resume' };
      if (initial) return { from, initial: 'true', mode: 'initial' };
      return { from, mode: from === undefined || from === 'now' ? 'live' : 'resume' };
    },
    begin(start) {
      brought.clear();
      cursor ??= start;
    },
    take(next, eventId) {
      const isNews = eventId === undefined || !taken.has(eventId);
      // The initial state comes whole each time, whatever of it has come before.
      if (eventId !== undefined && (cursor !== undefined || next !== undefined)) {
        taken.add(eventId);
        brought.add(eventId);
      }
      if (next !== undefined) {
        cursor = next;
        for (const id of brought) taken.delete(id);
        brought.clear();
      }
      return isNews;
    },
  };
}
