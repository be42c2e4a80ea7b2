/** Reconciles all that is due, then ends: what a scheduled function calls, and one of many that do so at once. */

import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { collectAll } from '#functions/reconcile/collect.ts';
import { createMapper } from '#functions/reconcile/map-changes.ts';
import { createPasses } from '#functions/reconcile/passes.ts';

export interface RunOnceOptions {
  /** No pass is begun after this long; those that run are waited for. */
  readonly budgetMs: number;
  /** Ends it early: no pass is begun, and those that run are told to stop. */
  readonly signal?: AbortSignal;
}

/**
 * Runs passes until nothing is due any more, or time is up.
 * @returns how many it ran.
 * @throws {StatusError} ServiceUnavailable when the store is away; nothing is lost, call again.
 */
export async function runOnce(deps: ReconcileDeps, { budgetMs, signal }: RunOnceOptions): Promise<number> {
  const endAtMs = performance.now() + budgetMs;
  let count = 0;
  const passes = createPasses({ deps, installation: await deps.upkeep.installation(), onEnded: () => (count += 1) });
  const isOver = (): boolean => signal?.aborted === true || performance.now() >= endAtMs;
  const stop = (): void => passes.end();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    await deps.upkeep.reportAlive(passes.controllers);
    const mapper = createMapper({ ...deps, onError: (error) => deps.reports?.onError(error) });
    while (!isOver()) {
      await mapper.look();
      const hasClaimed = (await passes.claim()) !== 'none';
      if (hasClaimed) continue;
      if (passes.busy > 0) await passes.ended();
      // What is collected may be due for its controllers.
      else if ((await collectAll(deps.upkeep, signal)) === 0) break;
    }
  } finally {
    await passes.settled();
    signal?.removeEventListener('abort', stop);
    passes.close();
  }
  return count;
}
