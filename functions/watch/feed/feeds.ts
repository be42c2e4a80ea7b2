/** The feeds of this process, each started once, and kept for a while for who reconnects. */

import { cursorScope } from '#core/cursor.ts';
import type { Audience, TenantSet } from '#core/identity.ts';
import { Feed, type FeedDeps } from '#functions/watch/feed/feed.ts';
import { shareCalls } from '#functions/watch/shared-call.ts';
import { createStreamList, unionOf } from '#functions/watch/feed/stream-list.ts';

export interface Feeds {
  /**
   * @param granted what its cursors are bound to: `tenants`, and those that are blocked. @default tenants
   * @throws {StatusError} BadRequest, ServiceUnavailable.
   */
  get(audience: Audience, tenants: TenantSet, granted?: TenantSet): Promise<Feed>;
  /** Streams were opened or closed: one query for all feeds. */
  refresh(): void;
  /** Lets go of those that nobody has watched for long. */
  sweep(nowMs: number): void;
  stop(): void;
}

interface KnownFeed {
  readonly feed: Feed;
  readonly started: Promise<void>;
  idleSinceMs: number;
}

export function createFeeds(deps: Omit<FeedDeps, 'listStreams'>, lingerMs: number): Feeds {
  const feeds = new Map<string, KnownFeed>();
  const listStreams = shareCalls(async () => {
    const all = [...feeds.values()].map(({ feed }) => feed);
    const ids = new Set(all.flatMap((feed) => feed.ids));
    return createStreamList(await deps.streams.list({ tenants: unionOf(all.map((feed) => feed.tenants)) }, [...ids]));
  });

  return { get, refresh, sweep, stop };

  async function get(audience: Audience, tenants: TenantSet, granted: TenantSet = tenants): Promise<Feed> {
    const key = [granted, tenants].map((set) => cursorScope(audience, set)).join();
    const known = feeds.get(key) ?? begin(key, audience, tenants, granted);
    try {
      await known.started;
    } catch (error) {
      if (feeds.get(key) === known) drop(key, known);
      throw error;
    }
    known.idleSinceMs = performance.now();
    return known.feed;
  }

  function begin(key: string, audience: Audience, tenants: TenantSet, granted: TenantSet): KnownFeed {
    const feed = new Feed({ ...deps, listStreams }, { audience, tenants, granted });
    const known = { feed, started: feed.start(), idleSinceMs: performance.now() };
    feeds.set(key, known);
    return known;
  }

  function refresh(): void {
    for (const { feed, started } of feeds.values()) {
      // A feed whose start failed is on its way out; a refresh that fails is made again at the next call.
      started.then(() => feed.refresh()).catch(() => undefined);
    }
  }

  function sweep(nowMs: number): void {
    for (const [key, known] of feeds) {
      if (known.feed.watchers.size > 0) known.idleSinceMs = nowMs;
      else if (nowMs - known.idleSinceMs > lingerMs) drop(key, known);
    }
  }

  function drop(key: string, { feed }: KnownFeed): void {
    feeds.delete(key);
    feed.stop();
  }

  function stop(): void {
    for (const [key, known] of feeds) drop(key, known);
  }
}
