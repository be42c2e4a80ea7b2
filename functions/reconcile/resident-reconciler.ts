/**
 * A reconciler that stays: it claims as long as there is room and something is due, sleeps until there may be work, and
 * never ends on an error. Any number of processes may do so.
 */

import type { WriterSleep } from '#core/ports/writer-sleep.ts';
import { pause } from '#loop/pause.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { createCollector } from '#functions/reconcile/collect.ts';
import { createMapper } from '#functions/reconcile/map-changes.ts';
import { type Claimed, createPasses, type Passes } from '#functions/reconcile/passes.ts';
import { createTimer } from '#functions/reconcile/timer.ts';

export interface ResidentReconcilerDeps extends ReconcileDeps {
  readonly sleep: WriterSleep;
}

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;
/** Of timers that other processes have set; its own passes tell theirs. */
const ASK_EVERY_MS = 1_000;
/** Passes may take so long to end by themselves once the process is asked to stop. */
const STOP_GRACE_MS = 30_000;

/** Runs until the signal aborts; resolves when the passes that ran have ended. */
export async function runResidentReconciler(deps: ResidentReconcilerDeps, signal: AbortSignal): Promise<void> {
  const onError = (error: unknown): void => deps.reports?.onError(error);
  let lateness: ReturnType<typeof setTimeout> | undefined;
  /** When the store is asked for the next timer. */
  let askAtMs = 0;
  const timer = createTimer(() => {
    // It keeps the nearest time alone.
    askAtMs = 0;
    deps.sleep.wake();
  });
  const mapper = createMapper({ ...deps, onError }, () => deps.sleep.wake());
  const collector = createCollector(deps.upkeep, onError);
  const passes = await openPasses();
  if (!passes) return;
  signal.addEventListener('abort', () => endLate(passes), { once: true });
  await work(passes);
  timer.clear();
  await collector.end();
  await passes.settled();
  clearTimeout(lateness);
  passes.close();

  function endLate(opened: Passes): void {
    lateness = setTimeout(() => opened.end(), STOP_GRACE_MS);
  }

  async function openPasses(): Promise<Passes | undefined> {
    for (;;) {
      try {
        const installation = await deps.upkeep.installation();
        // What became due during a pass, or is due soon after it, is nobody's news: this process knows it alone.
        return createPasses({ deps, installation, onEnded: (nextMs) => timer.in(nextMs) });
      } catch (error) {
        if (signal.aborted) return undefined;
        onError(error);
        await pause(LONGEST_RETRY_MS, signal);
      }
    }
  }

  async function work(opened: Passes): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        // A claim that gave less than asked may have left something; that is found when all is claimed before the sleep.
        await claimWhile(opened, ['all'], signal);
        if (performance.now() >= askAtMs) {
          timer.in(await deps.queue.nextDueMs(opened.controllers));
          askAtMs = performance.now() + ASK_EVERY_MS;
        }
        await deps.sleep.sleep((enough) => claimWhile(opened, ['all', 'some'], enough));
        retryMs = FIRST_RETRY_MS;
      } catch (error) {
        if (signal.aborted) return;
        onError(error);
        await pause(retryMs, signal);
        retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
      }
    }
  }

  async function claimWhile(opened: Passes, goOn: readonly Claimed[], enough: AbortSignal): Promise<void> {
    for (let mayBeMore = true; mayBeMore && !enough.aborted && !signal.aborted;) {
      void mapper.look();
      collector.look();
      const claimed = await opened.claim();
      const isFull = !opened.hasRoom;
      if (isFull) await opened.ended();
      mayBeMore = isFull || goOn.includes(claimed);
    }
  }
}
