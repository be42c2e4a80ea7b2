/** Collection of dependents without an owner: a nudge by whoever changes objects, and rounds that miss nothing. */

import type { WorkUpkeep } from '#core/ports/work-queue.ts';

/** All that can be collected now. @returns how many changes were looked at. */
export async function collectAll(upkeep: Pick<WorkUpkeep, 'collect'>, signal?: AbortSignal): Promise<number> {
  let total = 0;
  while (signal?.aborted !== true) {
    const handled = await upkeep.collect();
    if (handled === 0) break;
    total += handled;
  }
  return total;
}

export interface Collector {
  /** Something may have changed: it is looked at soon. */
  look(): void;
  /** Ends it; resolves when the round that runs has ended. */
  end(): Promise<void>;
}

/** Reconcilers look with every claim, thousands of times a second: rounds begin no closer together than this. */
const APART_MS = 20;

/** Rounds never overlap in one process. A failure is told, and left to the next round. */
export function createCollector(upkeep: Pick<WorkUpkeep, 'collect'>, onError: (error: unknown) => void): Collector {
  const ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  let isAsked = false;
  let lastMs = -Infinity;
  return {
    look() {
      isAsked = true;
      if (timer !== undefined || running || ending.signal.aborted) return;
      timer = setTimeout(
        () => {
          running = round();
        },
        Math.max(0, lastMs + APART_MS - performance.now()),
      );
    },
    async end() {
      ending.abort();
      clearTimeout(timer);
      await running;
    },
  };

  async function round(): Promise<void> {
    timer = undefined;
    while (isAsked) {
      isAsked = false;
      await collectAll(upkeep, ending.signal).catch(onError);
    }
    lastMs = performance.now();
    running = undefined;
  }
}
