/** Keeps one cache as the objects are: a list, a watch from its cursor, and again whenever there is no going on. */

import { createBackoff } from '#infra/client/backoff.ts';
import type { Caller, Connection } from '#infra/client/caller.ts';
import { CursorRefused, isRetried, StatusError, StreamRecreated } from '#infra/client/errors.ts';
import type { Cache } from '#infra/client/informer/cache.ts';
import { type InformerKind, readList } from '#infra/client/informer/list.ts';
import type { StreamOptions } from '#infra/client/stream.ts';
import { watch } from '#infra/client/watch.ts';
import { pause } from '#loop/pause.ts';

export interface ReflectorOptions<Spec, Status> extends Connection, Omit<StreamOptions, 'onRetry'> {
  readonly caller: Caller;
  readonly cache: Cache<Spec, Status>;
  readonly kind: InformerKind;
  readonly tenant: string | undefined;
  readonly labelSelector: string | undefined;
  readonly pageSize: number;
  readonly relistSpreadMs: number;
  readonly onRetry: (why: Error, delayMs: number) => void;
  /** The cache is the state of now. */
  readonly onListed: () => void;
  readonly signal: AbortSignal;
}

/** Until the signal aborts, or the tenant is gone. @throws {StatusError} {ProtocolError} what trying again does not help. */
export async function reflect<Spec, Status>(options: ReflectorOptions<Spec, Status>): Promise<void> {
  const { caller, cache, kind, tenant, labelSelector, relistSpreadMs, onRetry, onListed, signal } = options;
  const backoff = createBackoff(options.retry);
  const relists = createBackoff({ minMs: relistSpreadMs, maxMs: Math.max(relistSpreadMs, 30_000) });
  // The log is not the one that the cache is from.
  let isTrusted = false;
  while (!signal.aborted) {
    try {
      const intake = cache.beginList({ isTrusted });
      const cursor = await readList(caller, options, intake.take);
      intake.complete();
      isTrusted = false;
      backoff.reset();
      onListed();
      const startedAtMs = performance.now();
      try {
        await follow(cursor);
        return;
      } finally {
        relists.lived(performance.now() - startedAtMs);
      }
    } catch (error) {
      if (signal.aborted) return;
      const isRefused = error instanceof CursorRefused;
      if (!isRefused && !isRetried(error)) throw error;
      isTrusted ||= error instanceof StreamRecreated;
      // All informers of a server are refused at once, and must not all list at once.
      const delayMs = isRefused ? relists.next() : backoff.next(error instanceof StatusError ? error.retryAfterMs : 0);
      onRetry(error, delayMs);
      await pause(delayMs, signal);
    }
  }

  async function follow(cursor: string): Promise<void> {
    const changes = watch<Spec, Status>({
      url: options.url,
      token: options.token,
      tenants: tenant === undefined ? undefined : [tenant],
      kinds: [`${kind.group}/${kind.kind}`],
      labelSelector,
      from: cursor,
      ...(options.heartbeatMs !== undefined && { heartbeatMs: options.heartbeatMs }),
      ...(options.retry && { retry: options.retry }),
      onRetry,
      signal,
    });
    for await (const change of changes) cache.apply(change);
  }
}
