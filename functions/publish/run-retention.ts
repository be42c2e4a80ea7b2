/** Housekeeping of the event log while a process stays: room ahead, and an end behind. */

import type { Retention } from '#core/ports/retention.ts';

export interface RunRetentionDeps {
  readonly retention: Retention;
  /** How long events are kept. */
  readonly olderThanMs: number;
  readonly onError: (error: unknown) => void;
}

const INTERVAL_MS = 600_000;

/** Once now, then every ten minutes, until the signal aborts. Any number of processes may do so. */
export async function runRetention(deps: RunRetentionDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await maintainLog(deps);
    } catch (error) {
      deps.onError(error);
    }
    await pause(signal);
  }
}

/** One round: what a scheduled function calls. */
export async function maintainLog({ retention, olderThanMs }: Omit<RunRetentionDeps, 'onError'>): Promise<void> {
  await retention.prepare();
  await retention.expire(olderThanMs);
}

async function pause(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, INTERVAL_MS);
    signal.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}
