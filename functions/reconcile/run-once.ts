/** Reconciles all that is due, then ends: what a scheduled function calls, and one of many that do so at once. */

import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { collectAll } from '#functions/reconcile/collect.ts';
import { createMapper } from '#functions/reconcile/map-changes.ts';
import { createPasses, type Passes } from '#functions/reconcile/passes.ts';

export interface RunOnceOptions {
  /** Nothing is begun after this long: no pass, no page of changes. Passes that run are waited for. */
  readonly budgetMs: number;
  /** Ends it early: nothing is begun, and passes that run are told to stop. */
  readonly signal?: AbortSignal;
}

/**
 * Runs passes until nothing is due any more, or time is up.
 * @returns how many it ran.
 * @throws {StatusError} ServiceUnavailable when the store is away; nothing is lost, call again.
 */
export async function runOnce(deps: ReconcileDeps, { budgetMs, signal }: RunOnceOptions): Promise<number> {
  const over = new AbortController();
  const budget = setTimeout(() => over.abort(), budgetMs);
  let passes: Passes | undefined;
  const stop = (): void => {
    over.abort();
    passes?.end();
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  let count = 0;
  try {
    const installation = await deps.upkeep.installation();
    passes = createPasses({ deps, installation, onEnded: () => (count += 1) });
    await deps.upkeep.reportAlive(passes.controllers);
    const mapper = createMapper({ ...deps, signal: over.signal, onError: (error) => deps.reports?.onError(error) });
    while (!over.signal.aborted) {
      await mapper.look();
      const hasClaimed = (await passes.claim()) !== 'none';
      if (hasClaimed) continue;
      if (passes.busy > 0) await passes.ended();
      // What is collected may be due for its controllers.
      else if ((await collectAll(deps.upkeep, over.signal)) === 0) break;
    }
  } finally {
    await passes?.settled();
    clearTimeout(budget);
    signal?.removeEventListener('abort', stop);
    passes?.close();
  }
  return count;
}
