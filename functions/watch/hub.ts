/** All watches of this process: their feeds, one clock for all of them, and their end. */

import type { Audience, Caller, TenantSet } from '#core/identity.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import type { BlockSet } from '#core/token-block.ts';
import { tokenBlocked } from '#http/admit.ts';
import type { Feed, FeedDeps } from '#functions/watch/feed/feed.ts';
import { createFeeds } from '#functions/watch/feed/feeds.ts';
import type { Filter } from '#functions/watch/filter/compile.ts';
import { type CoordinatorDeps, GroupCoordinator } from '#functions/watch/groups/coordinator.ts';
import { Tails } from '#functions/watch/tail/tails.ts';
import type { TimedStream, WatchEnd, WatchMode } from '#functions/watch/timed-stream.ts';
import { Turns } from '#functions/watch/pacing/turns.ts';
import { changeForView, type View } from '#functions/watch/view.ts';
import type { WatchPlaces } from '#functions/watch/watch-places.ts';
import {
  blocksUnknown,
  keyWithdrawn,
  stopping,
  tenantsLost,
  tokenExpired,
  tooManyFilters,
  tooSlow,
} from '#functions/watch/watch-errors.ts';

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

export interface HubDeps
  extends
    Omit<FeedDeps, 'tails' | 'turns' | 'listStreams'>,
    Pick<CoordinatorDeps, 'groups' | 'ackTokens' | 'onRedelivery' | 'onDeadLettersFull'> {
  readonly blocks: TokenBlocks;
  /** @default as many as come */
  readonly places?: WatchPlaces;
  /** Whether tokens of the key with this id are still taken. @default they are */
  readonly trustsKey?: ((keyId: string) => boolean) | undefined;
  readonly onOpen: (mode: WatchMode) => void;
  readonly onEnd: (end: WatchEnd, mode: WatchMode) => void;
}

interface Registration {
  readonly stream: TimedStream;
  readonly view: View;
  readonly endsAtMs: number;
  readonly giveBack: () => void;
  bookmarkAtMs: number;
  /** The blocks that it was last compared with. */
  obeyed: BlockSet | undefined;
}

const TICK_MS = 250;
/** Different ones, over all open streams of one caller. */
const MAX_FILTERS = 200;
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
  /** The members of groups. */
  readonly groups: GroupCoordinator;
  /** How many are registered. */
  readonly openStreams: number;
  /**
   * Takes a place for a stream that is about to begin; it is given back by its end, or by the function that this returns.
   * @throws {StatusError} TooManyRequests.
   */
  takePlace(view: View): () => void;
  /** Keeps the time of a stream: bookmarks, age, the end of its token and of what it may see, stalls; and then its place. */
  register(stream: TimedStream, view: View, giveBack?: () => void): void;
  /** The client's connection is gone. */
  unregister(stream: TimedStream): void;
  /**
   * Bounds what the streams of one caller make the process do.
   * @throws {StatusError} TooManyRequests for one more filter than its open streams may have.
   */
  assertFilterAllowed(caller: Pick<Caller, 'subject'>, filter: Filter | undefined): void;
  /** @throws {StatusError} ServiceUnavailable once it was stopped. */
  assertRunning(): void;
  /** Ends every stream, with its cursor where it has one. New ones are refused. Resolves when groups have their lanes back. */
  stop(): Promise<void>;
}

export function createHub(deps: HubDeps, options: HubOptions = {}): Hub {
  const { bookmarkMs = 15_000, maxAgeMs = 1_800_000, stallMs = 30_000, lingerMs = 30_000 } = options;
  const lifetime = new AbortController();
  const tails = new Tails(deps);
  // Their own: members of groups do not wait for what filters take.
  const filterTurns = new Turns({ restPerMs: 1 });
  const feeds = createFeeds({ ...deps, tails, turns: filterTurns }, lingerMs);
  const groups = new GroupCoordinator({ ...deps, tails, turns: new Turns() });
  const registrations = new Map<TimedStream, Registration>();

  deps.streams.onChange(() => feeds.refresh(), lifetime.signal);
  const ticker = setInterval(tick, TICK_MS);

  return {
    groups,
    get openStreams() {
      return registrations.size;
    },
    feed,
    takePlace,
    register,
    unregister,
    assertFilterAllowed,
    assertRunning,
    stop,
  };

  async function feed(audience: Audience, tenants: TenantSet, granted: TenantSet = tenants): Promise<Feed> {
    assertRunning();
    return feeds.get(audience, tenants, granted);
  }

  function assertRunning(): void {
    if (lifetime.signal.aborted) throw stopping();
  }

  function assertFilterAllowed({ subject }: Pick<Caller, 'subject'>, filter: Filter | undefined): void {
    if (!filter) return;
    const texts = new Set<string>();
    for (const { stream, view } of registrations.values()) {
      if (stream.filter && view.token.subject === subject) texts.add(stream.filter.text);
    }
    if (texts.size >= MAX_FILTERS && !texts.has(filter.text)) throw tooManyFilters(MAX_FILTERS);
  }

  function takePlace({ token, granted }: View): () => void {
    return deps.places?.take(token.subject, granted) ?? (() => undefined);
  }

  function register(stream: TimedStream, view: View, giveBack: () => void = () => undefined): void {
    const nowMs = performance.now();
    registrations.set(stream, {
      stream,
      view,
      giveBack,
      endsAtMs: nowMs + maxAgeMs * (1 + Math.random()),
      bookmarkAtMs: nextBookmark(nowMs),
      obeyed: undefined,
    });
    deps.onOpen(stream.mode);
  }

  function unregister(stream: TimedStream): void {
    stream.closed();
    registrations.get(stream)?.giveBack();
    if (registrations.delete(stream)) deps.onEnd(stream.endedBy ?? 'client', stream.mode);
  }

  function endWith({ stream, giveBack }: Registration, end: WatchEnd, act: () => void): void {
    registrations.delete(stream);
    giveBack();
    act();
    deps.onEnd(end, stream.mode);
  }

  function tick(): void {
    const nowMs = performance.now();
    const epochMs = Date.now();
    for (const registration of registrations.values()) {
      const { stream, view } = registration;
      if (stream.isClosed) endWith(registration, stream.endedBy ?? 'client', () => undefined);
      else if (stream.blockedMs(nowMs) > stallMs) endWith(registration, 'slow', () => stream.end(tooSlow(stallMs)));
      else if (epochMs >= view.token.expiresAtMs) endWith(registration, 'token', () => stream.end(tokenExpired()));
      else if (isWithdrawn(view)) endWith(registration, 'token', () => stream.end(keyWithdrawn()));
      else if (obeyBlocks(registration)) continue;
      else if (nowMs >= registration.endsAtMs) endWith(registration, 'age', () => stream.finish());
      else if (nowMs >= registration.bookmarkAtMs) {
        registration.bookmarkAtMs = nextBookmark(nowMs);
        stream.bookmark();
      }
    }
    feeds.sweep(nowMs);
    tails.trim(nowMs);
  }

  function isWithdrawn({ token: { keyId } }: View): boolean {
    return keyId !== undefined && deps.trustsKey?.(keyId) === false;
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

  async function stop(): Promise<void> {
    clearInterval(ticker);
    lifetime.abort();
    for (const registration of registrations.values()) {
      endWith(registration, 'shutdown', () => registration.stream.finish());
    }
    feeds.stop();
    await groups.stop();
  }
}
