/** What each part of the client's suite starts from: watches that end with their test, and what they have taken. */

import { afterEach, expect } from 'vitest';
import { type Bookmark, type Change, watch, type Watch, type WatchOptions } from 'plumbline/client';
import type { World } from '#test/http/resource-api/world.ts';
import type { Grant } from '#test/http/target.ts';
import { viewerOf } from '#test/http/watch/world.ts';
import { createChanges } from '#test/support/changes.ts';

/** Cut clients come back at once. */
export const QUICKLY = { minMs: 20, maxMs: 50, steadyMs: 0 } as const;

export type Item = Change | Bookmark;

export interface Taken {
  readonly items: readonly Item[];
  readonly changes: readonly Change[];
  /** Why it could not go on at once, each time. */
  readonly retries: readonly Error[];
  /** Settles when the loop has ended; with its error. Never rejects. */
  readonly ended: Promise<unknown>;
  /** Waits for an item, also one that has come already. @throws when the watch ends, or at the deadline. */
  until(predicate: (item: Item) => boolean, deadlineMs?: number): Promise<Item>;
  /** Waits until it failed so often. */
  untilRetries(count: number): Promise<void>;
  /** Ends the loop. */
  stop(): Promise<void>;
}

export interface TakeOptions extends Partial<Omit<WatchOptions, 'bookmarks' | 'signal'>> {
  /** @default a viewer of the world's tenant */
  readonly grant?: Grant;
}

const DEADLINE_MS = 20_000;

/** Takes all items of a watch, bookmarks too, in a loop of its own, which ends with the test. */
export function useTaking(world: World): (options?: TakeOptions) => Promise<Taken> {
  const loops: Taken[] = [];
  afterEach(async () => {
    await Promise.all(loops.splice(0).map((loop) => loop.stop()));
  });
  return async ({ grant = viewerOf(world), ...options } = {}) => {
    const loop = take({
      url: world.target.baseUrl,
      token: await world.target.token(grant),
      retry: QUICKLY,
      ...options,
    });
    loops.push(loop);
    return loop;
  };
}

export function take(options: Omit<WatchOptions, 'bookmarks' | 'signal'>): Taken {
  const items: Item[] = [];
  const retries: Error[] = [];
  const changed = createChanges();
  let isEnded = false;
  const stream: Watch<Item> = watch({
    ...options,
    bookmarks: true,
    onRetry(why, delayMs) {
      retries.push(why);
      options.onRetry?.(why, delayMs);
      changed.tell();
    },
  });
  const ended = run();
  return {
    items,
    get changes() {
      return items.filter((item) => item.type !== 'BOOKMARK');
    },
    retries,
    ended,
    until,
    async untilRetries(count) {
      await wait(() => (retries.length >= count ? true : undefined), DEADLINE_MS);
    },
    async stop() {
      await stream.return?.();
      await ended;
    },
  };

  async function run(): Promise<unknown> {
    try {
      for await (const item of stream) {
        items.push(item);
        changed.tell();
      }
      return undefined;
    } catch (error) {
      return error;
    } finally {
      isEnded = true;
      changed.tell();
    }
  }

  async function until(predicate: (item: Item) => boolean, deadlineMs: number = DEADLINE_MS): Promise<Item> {
    let index = 0;
    return wait(() => {
      for (; index < items.length; index += 1) {
        const item = items[index];
        if (item && predicate(item)) return item;
      }
      return undefined;
    }, deadlineMs);
  }

  async function wait<T>(look: () => T | undefined, deadlineMs: number): Promise<T> {
    const deadline = performance.now() + deadlineMs;
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      const remainingMs = deadline - performance.now();
      if (isEnded) throw new Error('the watch has ended', { cause: await ended });
      if (remainingMs <= 0)
        throw new Error(`it did not come; last: ${JSON.stringify(items.slice(-3))}; ${retries.join()}`);
      await changed.next(remainingMs);
    }
  }
}

/** The change of an object in this version. */
export function isOf(object: { metadata: { uid: string; resourceVersion: string } }): (item: Item) => boolean {
  const { uid, resourceVersion } = object.metadata;
  return (item) =>
    item.type !== 'BOOKMARK' && item.event.uid === uid && item.object.metadata.resourceVersion === resourceVersion;
}

/** `ADDED blue`, in order. */
export function storyOf({ changes }: Pick<Taken, 'changes'>): string[] {
  return changes.map(({ type, object }) => `${type} ${object.metadata.name}`);
}

/** How many changes came, each once. */
export function expectOnce({ changes }: Pick<Taken, 'changes'>): void {
  const ids = changes.map(({ event }) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
}
