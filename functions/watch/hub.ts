/** All watches of this process: their feeds, one clock for all of them, and their end. */

import type { Audience, TenantSet } from '#core/identity.ts';
import type { Feed, FeedDeps } from '#functions/watch/feed.ts';
import { createFeeds } from '#functions/watch/feeds.ts';
import { Tails } from '#functions/watch/tails.ts';
import { stopping, tokenExpired, tooSlow } from '#functions/watch/watch-errors.ts';
import type { Watcher } from '#functions/watch/watcher.ts';

export interface HubOptions {
  /** A bookmark at the latest after this long. @default 15,000 */
  readonly bookmarkMs?: number;
  /** Streams end, with their cursor, at a random age between this and twice this. @default 1,800,000 */
  readonly maxAgeMs?: number;
  /** A client that takes nothing for this long is cut off. @default 30,000 */
  readonly stallMs?: number;
  /** A feed that nobody watches is kept for this long, for who reconnects. @default 30,000 */
  readonly lingerMs?: number;
}

/** Why a watch ended. */
export type WatchEnd = 'client' | 'age' | 'token' | 'slow' | 'shutdown' | 'tenant' | 'error';

export interface HubDeps extends Omit<FeedDeps, 'tails' | 'listStreams'> {
  readonly onOpen: () => void;
  readonly onEnd: (end: WatchEnd) => void;
}

interface Registration {
  readonly watcher: Watcher;
  readonly endsAtMs: number;
  readonly tokenEndsAtMs: number;
  bookmarkAtMs: number;
}

const TICK_MS = 250;
/** Bookmarks are spread over this share of their interval, so that thousands do not fall on one tick. */
const BOOKMARK_SPREAD = 0.2;

export interface Hub {
  /** The feed of an audience and a set of tenants, started. @throws {StatusError} BadRequest, ServiceUnavailable. */
  feed(audience: Audience, tenants: TenantSet): Promise<Feed>;
  /** Keeps the time of a watcher: bookmarks, age, the token's end (milliseconds since the epoch), stalls. */
  register(watcher: Watcher, tokenEndsAtMs: number): void;
  /** The client's connection is gone. */
  unregister(watcher: Watcher): void;
  /** Ends every stream with its cursor. New ones are refused. */
  stop(): void;
}

export function createHub(deps: HubDeps, options: HubOptions = {}): Hub {
  const { bookmarkMs = 15_000, maxAgeMs = 1_800_000, stallMs = 30_000, lingerMs = 30_000 } = options;
  const lifetime = new AbortController();
  const feeds = createFeeds({ ...deps, tails: new Tails(deps) }, lingerMs);
  const registrations = new Map<Watcher, Registration>();

  deps.streams.onChange(() => feeds.refresh(), lifetime.signal);
  const ticker = setInterval(tick, TICK_MS);

  return { feed, register, unregister, stop };

  async function feed(audience: Audience, tenants: TenantSet): Promise<Feed> {
    if (lifetime.signal.aborted) throw stopping();
    return feeds.get(audience, tenants);
  }

  function register(watcher: Watcher, tokenEndsAtMs: number): void {
    const nowMs = performance.now();
    registrations.set(watcher, {
      watcher,
      endsAtMs: nowMs + maxAgeMs * (1 + Math.random()),
      tokenEndsAtMs,
      bookmarkAtMs: nextBookmark(nowMs),
    });
    deps.onOpen();
  }

  function unregister(watcher: Watcher): void {
    watcher.closed();
    if (registrations.delete(watcher)) deps.onEnd(watcher.endedBy ?? 'client');
  }

  function endWith(registration: Registration, end: WatchEnd, act: () => void): void {
    registrations.delete(registration.watcher);
    act();
    deps.onEnd(end);
  }

  function tick(): void {
    const nowMs = performance.now();
    const epochMs = Date.now();
    for (const registration of registrations.values()) {
      const { watcher } = registration;
      if (watcher.isClosed) endWith(registration, watcher.endedBy ?? 'client', () => undefined);
      else if (watcher.blockedMs(nowMs) > stallMs) endWith(registration, 'slow', () => watcher.end(tooSlow(stallMs)));
      else if (epochMs >= registration.tokenEndsAtMs) endWith(registration, 'token', () => watcher.end(tokenExpired()));
      else if (nowMs >= registration.endsAtMs) endWith(registration, 'age', () => watcher.finish());
      else if (nowMs >= registration.bookmarkAtMs) {
        registration.bookmarkAtMs = nextBookmark(nowMs);
        watcher.bookmark();
      }
    }
    feeds.sweep(nowMs);
  }

  function nextBookmark(nowMs: number): number {
    return nowMs + bookmarkMs * (1 - BOOKMARK_SPREAD * Math.random()) - TICK_MS;
  }

  function stop(): void {
    clearInterval(ticker);
    for (const registration of registrations.values()) {
      endWith(registration, 'shutdown', () => registration.watcher.finish());
    }
    feeds.stop();
    lifetime.abort();
  }
}
