/** A watch: committed changes in order, over all disconnections. */

import { type Connection, createCaller } from '#infra/client/caller.ts';
import { type LinkedSignal, linkSignal } from '#infra/client/linked-signal.ts';
import type { Bookmark, Change, CloudEvent, PlumblineObject } from '#infra/client/objects.ts';
import { createPlace, type Start } from '#infra/client/place.ts';
import { type Selection, watchPath } from '#infra/client/selection.ts';
import { type Frame, type Mode, openAgain, type StreamOptions } from '#infra/client/stream.ts';

export interface WatchOptions extends Connection, Selection, Start, StreamOptions {
  /** Bookmarks too. @default false */
  readonly bookmarks?: boolean;
  /** Ends the watch, without an error. */
  readonly signal?: AbortSignal;
}

/** Ends, and its connection with it, by `break`, `return` or `throw` in its loop, or by `return()`. */
export type Watch<Item> = AsyncIterableIterator<Item, undefined, undefined>;

/**
 * Changes from a place on, each once and in order, for as long as they are taken. Connections that end, break or fall
 * silent are opened again, from where this one was; a refused token is asked for anew. It ends
 * - without an error by the signal, and once every tenant of `tenants` is gone;
 * - with a `CursorRefused` (`Expired`, `StreamRecreated`, `CursorKeyRetired`) when there is no going on without a gap;
 * - with a `ProtocolError` when the server does not confirm what was asked for;
 * - with any other `StatusError` that trying again does not help: `BadRequest`, `Unauthorized`, `Forbidden`, `NotFound`.
 *
 * A loop that takes long holds nobody up: the server lets a client wait for 30 s, then the watch resumes.
 */
export function watch<Spec = Record<string, unknown>, Status = Record<string, unknown>>(
  options: WatchOptions & { readonly bookmarks: true },
): Watch<Change<Spec, Status> | Bookmark>;
export function watch<Spec = Record<string, unknown>, Status = Record<string, unknown>>(
  options: WatchOptions & { readonly bookmarks?: false },
): Watch<Change<Spec, Status>>;
export function watch<Spec, Status>(options: WatchOptions): Watch<Change<Spec, Status> | Bookmark> {
  const link = linkSignal(options.signal);
  const items = run<Spec, Status>(options, link);
  return {
    next: () => items.next(),
    return: end,
    [Symbol.asyncIterator]() {
      return this;
    },
  };

  async function end(): Promise<IteratorResult<never, undefined>> {
    // A generator does not return while it waits for what comes next.
    link.abort();
    await items.return(undefined);
    link.release();
    return { done: true, value: undefined };
  }
}

async function* run<Spec, Status>(
  options: WatchOptions,
  { signal, release }: LinkedSignal,
): AsyncGenerator<Change<Spec, Status> | Bookmark, undefined, undefined> {
  const { tenants, bookmarks = false } = options;
  const place = createPlace(options);
  const remaining = new Set(tenants);
  try {
    for await (const frame of openAgain({ ...options, caller: createCaller(options), request, signal })) {
      const item = itemOf<Spec, Status>(frame);
      if (frame.type === 'READY') place.begin(frame.id);
      else if (!place.take(frame.id, eventIdOf(item))) continue;
      if (item && (item.type !== 'BOOKMARK' || bookmarks)) yield item;
      if (item?.type !== 'BOOKMARK' || item.reason !== 'TenantGone') continue;
      if (item.tenant !== undefined && remaining.delete(item.tenant) && remaining.size === 0) return undefined;
    }
  } finally {
    release();
  }
  return undefined;

  function request(): { readonly path: string; readonly mode: Mode } {
    const { mode, ...start } = place.next;
    return { path: watchPath(options, start), mode };
  }
}

function eventIdOf(item: Change<unknown, unknown> | Bookmark | undefined): string | undefined {
  return item && item.type !== 'BOOKMARK' ? item.event.id : undefined;
}

/** Undefined for what means nothing to who watches. */
function itemOf<Spec, Status>({ type, id, data }: Frame): Change<Spec, Status> | Bookmark | undefined {
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const event = data as CloudEvent<PlumblineObject<Spec, Status>>;
      return { type, object: event.data, event, cursor: id };
    }
    case 'BOOKMARK':
      return { type, ...(data as Pick<Bookmark, 'reason' | 'tenant'>), cursor: id };
    case 'READY':
      if ((data as { readonly mode: string }).mode !== 'initial') return undefined;
      return { type: 'BOOKMARK', reason: 'InitialEventsBegin', cursor: undefined };
    default:
      // Of a newer server: what must be understood comes with another protocol.
      return undefined;
  }
}
