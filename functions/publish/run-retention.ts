/** Housekeeping of the event log while a process stays: room ahead, and an end behind. */

import { pause } from '#loop/pause.ts';
import type { Leases } from '#core/ports/leases.ts';
import type { Retention } from '#core/ports/retention.ts';

export interface RunRetentionDeps {
  readonly retention: Retention;
  readonly leases: Leases;
  /** How long events are kept. */
  readonly olderThanMs: number;
  readonly onError: (error: unknown) => void;
}

const INTERVAL_MS = 600_000;
/** Who loses it in the middle does no harm: dropping what is old is right whoever does it. */
const LEASE_MS = 300_000;

/** Once now, then every ten minutes, until the signal aborts. Any number of processes may do so. */
export async function runRetention(deps: RunRetentionDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await maintainLog(deps);
    } catch (error) {
      deps.onError(error);
    }
    await pause(INTERVAL_MS, signal);
  }
}

/** One round: what a scheduled function calls. Of several processes one at a time removes events. */
export async function maintainLog({
  retention,
  leases,
  olderThanMs,
}: Omit<RunRetentionDeps, 'onError'>): Promise<void> {
  await retention.prepare();
  const lease = await leases.acquire('retention', LEASE_MS);
  if (!lease) return;
  try {
    await retention.expire(olderThanMs);
  } finally {
    await leases.release(lease);
  }
}
