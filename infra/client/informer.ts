/** The objects of a kind as they are, kept so: a cache with a list and a watch behind it. */

import { type Connection, createCaller } from '#infra/client/caller.ts';
import { createCache, type Handlers } from '#infra/client/informer/cache.ts';
import type { InformerKind } from '#infra/client/informer/list.ts';
import { reflect } from '#infra/client/informer/reflector.ts';
import { linkSignal } from '#infra/client/linked-signal.ts';
import type { PlumblineObject } from '#infra/client/objects.ts';
import type { StreamOptions } from '#infra/client/stream.ts';

export type { InformerKind };

/** Handlers are called one after the other, once the cache has the change. What one throws ends the informer. */
export interface InformerOptions<Spec = Record<string, unknown>, Status = Record<string, unknown>>
  extends Connection, Handlers<Spec, Status>, Omit<StreamOptions, 'onRetry'> {
  readonly kind: InformerKind;
  /** Each is listed and watched by itself. @default all that the token may see, in one */
  readonly tenants?: readonly string[];
  readonly labelSelector?: string;
  /** Objects of one page of a list, 1,000 at most. @default 500 */
  readonly pageSize?: number;
  /** A list that a refused cursor calls for is read after a random time up to this. @default 5,000 */
  readonly relistSpreadMs?: number;
  /** A call failed, or the cursor was refused, and after this time it goes on. */
  readonly onRetry?: (why: Error, delayMs: number) => void;
  /** Ends it, without an error; the cache stays as it is. */
  readonly signal?: AbortSignal;
}

export interface Informer<Spec = Record<string, unknown>, Status = Record<string, unknown>> {
  /** Resolves once the cache has all objects. Rejects as `ended` does, and when it was ended before. */
  readonly synced: Promise<void>;
  /**
   * Resolves when the signal has ended it, or all its tenants are gone. It rejects as a watch does, though a refused cursor
   * only makes it list again, and with what a handler throws: whoever handles that nowhere has an unhandled rejection.
   */
  readonly ended: Promise<void>;
  /** The object of this name; `tenant` unless the kind is cluster-scoped. */
  get(name: string, tenant?: string): PlumblineObject<Spec, Status> | undefined;
  /** All objects, or those of one tenant. */
  list(tenant?: string): PlumblineObject<Spec, Status>[];
}

/**
 * Begins at once. The cache never goes back to an older version of an object, over disconnections, restarts and lost
 * history too. Every deletion is reported once; one that nobody has seen is found by the next list, and reported with
 * `finalStateUnknown`.
 */
export function informer<Spec = Record<string, unknown>, Status = Record<string, unknown>>(
  options: InformerOptions<Spec, Status>,
): Informer<Spec, Status> {
  const { tenants = [undefined], labelSelector, pageSize = 500, relistSpreadMs = 5_000 } = options;
  const link = linkSignal(options.signal);
  const caller = createCaller(options);
  const parts = tenants.map((tenant) => {
    const cache = createCache(options);
    let onListed = (): void => undefined;
    const listed = new Promise<void>((resolve) => (onListed = resolve));
    const ended = reflect({
      ...options,
      onRetry: options.onRetry ?? (() => undefined),
      caller,
      cache,
      tenant,
      labelSelector,
      pageSize,
      relistSpreadMs,
      onListed,
      signal: link.signal,
    });
    return { cache, listed, ended };
  });
  const ended = run();
  const synced = Promise.race([
    Promise.all(parts.map(({ listed }) => listed)).then(() => undefined),
    ended.then(() => {
      throw new Error('the informer was ended before it had all objects');
    }),
  ]);
  // `ended` tells the same.
  synced.catch(() => undefined);

  return {
    synced,
    ended,
    get(name, tenant) {
      for (const { cache } of parts) {
        const object = cache.get(tenant, name);
        if (object) return object;
      }
      return undefined;
    },
    list: (tenant) =>
      parts.flatMap(({ cache }) =>
        [...cache.objects.values()].filter(({ metadata }) => tenant === undefined || metadata.namespace === tenant),
      ),
  };

  /** What ends one part ends all. */
  async function run(): Promise<void> {
    try {
      await Promise.all(parts.map((part) => part.ended));
    } finally {
      link.abort();
      link.release();
      await Promise.allSettled(parts.map((part) => part.ended));
    }
  }
}
