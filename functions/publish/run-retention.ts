/** Housekeeping of the event log and of who reads it, while a process stays: room ahead, and an end behind. */

import { pause } from '#loop/pause.ts';
import type { Leases } from '#core/ports/leases.ts';
import type { Retention } from '#core/ports/retention.ts';
import type { WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';

export interface RunRetentionDeps {
  readonly retention: Retention;
  readonly groups: Pick<WatchGroupAdmin, 'dropIdle' | 'forgetEnded'>;
  readonly leases: Leases;
  /** How long events are kept. */
  readonly olderThanMs: number;
  /** How long groups are kept that nobody is a member of. */
  readonly groupIdleMs: number;
  readonly onError: (error: unknown) => void;
}

const INTERVAL_MS = 600_000;
/** Who loses it in the middle does no harm: dropping what is old is right whoever does it. */
const LEASE_MS = 300_000;
/** What groups that ended leave behind, and what was done to groups by hand. */
const RECORDS_KEPT_MS = 365 * 86_400_000;

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

/** One round: what a scheduled function calls. Of several processes one at a time removes events and groups. */
export async function maintainLog({
  retention,
  groups,
  leases,
  olderThanMs,
  groupIdleMs,
}: Omit<RunRetentionDeps, 'onError'>): Promise<void> {
  await retention.prepare();
  const lease = await leases.acquire('retention', LEASE_MS);
  if (!lease) return;
  try {
    // Groups first: it is quick, and nothing that holds the log stands in its way.
    await groups.dropIdle(groupIdleMs);
    await groups.forgetEnded(RECORDS_KEPT_MS);
    await retention.expire(olderThanMs);
  } finally {
    await leases.release(lease);
  }
}
