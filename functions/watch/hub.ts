/** All watches of this process: their feeds, one clock for all of them, and their end. */

import type { Audience, TenantSet } from '#core/identity.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import type { StatusError } from '#core/status-error.ts';
import type { BlockSet } from '#core/token-block.ts';
import { tokenBlocked } from '#http/admit.ts';
import type { Feed, FeedDeps } from '#functions/watch/feed.ts';
import { createFeeds } from '#functions/watch/feeds.ts';
import { Tails } from '#functions/watch/tails.ts';
import { changeForView, type View } from '#functions/watch/view.ts';
import { blocksUnknown, stopping, tenantsLost, tokenExpired, tooSlow } from '#functions/watch/watch-errors.ts';

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
export type WatchEnd = 'client' | 'age' | 'token' | 'blocked' | 'slow' | 'shutdown' | 'tenant' | 'error';

/** One client's stream, as the hub keeps its time. */
export interface TimedStream {
  readonly isClosed: boolean;
  /** Why it ended by itself. */
  readonly endedBy: 'error' | 'tenant' | undefined;
  /** How long its client has taken nothing of what waits for it. */
  blockedMs(nowMs: number): number;
  /** Heartbeat and progress. */
  bookmark(): void;
  /** Ends it in peace, with the place where its client can go on. */
  finish(): void;
  /** Ends it with an error: Unauthorized, Forbidden (tenants are lost; whoever asked for all goes on without them) … */
  end(error: StatusError): void;
  /** The client's connection is gone. */
  closed(): void;
}

export interface HubDeps extends Omit<FeedDeps, 'tails' | 'listStreams'> {
  readonly blocks: TokenBlocks;
  readonly onOpen: () => void;
  readonly onEnd: (end: WatchEnd) => void;
}

interface Registration {
  readonly stream: TimedStream;
  readonly view: View;
  readonly endsAtMs: number;
  bookmarkAtMs: number;
  /** The blocks that it was last compared with. */
  obeyed: BlockSet | undefined;
}

const TICK_MS = 250;
/** Longer than a failover takes. Streams that are open would go on for who was blocked meanwhile. */
const MAX_BLOCKS_AGE_MS = 60_000;
/** Bookmarks are spread over this share of their interval, so that thousands do not fall on one tick. */
const BOOKMARK_SPREAD = 0.2;

export interface Hub {
  /**
   * The feed of an audience and a set of tenants, started; its cursors are bound to those that are granted.
   * @throws {StatusError} BadRequest, ServiceUnavailable.
   */
  feed(audience: Audience, tenants: TenantSet, granted?: TenantSet): Promise<Feed>;
  /** Keeps the time of a stream: bookmarks, age, the end of its token and of what it may see, stalls. */
  register(stream: TimedStream, view: View): void;
  /** The client's connection is gone. */
  unregister(stream: TimedStream): void;
  /** Ends every stream with its cursor. New ones are refused. */
  stop(): void;
}

export function createHub(deps: HubDeps, options: HubOptions = {}): Hub {
  const { bookmarkMs = 15_000, maxAgeMs = 1_800_000, stallMs = 30_000, lingerMs = 30_000 } = options;
  const lifetime = new AbortController();
  const feeds = createFeeds({ ...deps, tails: new Tails(deps) }, lingerMs);
  const registrations = new Map<TimedStream, Registration>();

  deps.streams.onChange(() => feeds.refresh(), lifetime.signal);
  const ticker = setInterval(tick, TICK_MS);

  return { feed, register, unregister, stop };

  async function feed(audience: Audience, tenants: TenantSet, granted: TenantSet = tenants): Promise<Feed> {
    if (lifetime.signal.aborted) throw stopping();
    return feeds.get(audience, tenants, granted);
  }

  function register(stream: TimedStream, view: View): void {
    const nowMs = performance.now();
    registrations.set(stream, {
      stream,
      view,
      endsAtMs: nowMs + maxAgeMs * (1 + Math.random()),
      bookmarkAtMs: nextBookmark(nowMs),
      obeyed: undefined,
    });
    deps.onOpen();
  }

  function unregister(stream: TimedStream): void {
    stream.closed();
    if (registrations.delete(stream)) deps.onEnd(stream.endedBy ?? 'client');
  }

  function endWith({ stream }: Registration, end: WatchEnd, act: () => void): void {
    registrations.delete(stream);
    act();
    deps.onEnd(end);
  }

  function tick(): void {
    const nowMs = performance.now();
    const epochMs = Date.now();
    for (const registration of registrations.values()) {
      const { stream, view } = registration;
      if (stream.isClosed) endWith(registration, stream.endedBy ?? 'client', () => undefined);
      else if (stream.blockedMs(nowMs) > stallMs) endWith(registration, 'slow', () => stream.end(tooSlow(stallMs)));
      else if (epochMs >= view.token.expiresAtMs) endWith(registration, 'token', () => stream.end(tokenExpired()));
      else if (obeyBlocks(registration)) continue;
      else if (nowMs >= registration.endsAtMs) endWith(registration, 'age', () => stream.finish());
      else if (nowMs >= registration.bookmarkAtMs) {
        registration.bookmarkAtMs = nextBookmark(nowMs);
        stream.bookmark();
      }
    }
    feeds.sweep(nowMs);
  }

  /** Whether it ended the stream. */
  function obeyBlocks(registration: Registration): boolean {
    const { stream, view } = registration;
    const { known, ageMs } = deps.blocks;
    if (ageMs > MAX_BLOCKS_AGE_MS) {
      endWith(registration, 'error', () => stream.end(blocksUnknown()));
      return true;
    }
    if (registration.obeyed === known) return false;
    registration.obeyed = known;
    const change = changeForView(view, known);
    if (change === undefined) return false;
    endWith(registration, 'blocked', () => {
      if (change === 'blocked') stream.end(tokenBlocked());
      else if (change === 'lost') stream.end(tenantsLost());
      // It begins anew with more.
      else stream.finish();
    });
    return true;
  }

  function nextBookmark(nowMs: number): number {
    return nowMs + bookmarkMs * (1 - BOOKMARK_SPREAD * Math.random()) - TICK_MS;
  }

  function stop(): void {
    clearInterval(ticker);
    for (const registration of registrations.values()) {
      endWith(registration, 'shutdown', () => registration.stream.finish());
    }
    feeds.stop();
    lifetime.abort();
  }
}
