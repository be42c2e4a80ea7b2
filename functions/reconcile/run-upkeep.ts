/** Housekeeping of reconciling while a process stays. Any number of processes may do so. */

import type { Leases } from '#core/ports/leases.ts';
import type { Orphans } from '#core/ports/orphans.ts';
import { pause } from '#loop/pause.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { collectAll } from '#functions/reconcile/collect.ts';
import { sweepOrphans } from '#functions/reconcile/sweep-orphans.ts';

export interface UpkeepDeps extends Pick<ReconcileDeps, 'upkeep' | 'kinds' | 'logger'> {
  readonly leases: Leases;
  readonly orphans: Orphans;
  /** Absent: orphans are left where they are. */
  readonly sweep?: { readonly everyMs: number; readonly graceMs: number } | undefined;
  readonly onError: (error: unknown) => void;
}

const ALIVE_EVERY_MS = 10_000;
const BLOCKERS_EVERY_MS = 30_000;
const FILL_EVERY_MS = 600_000;
const SWEEP_OWNERS_EVERY_MS = 60_000;
const SWEEP_OWNERS_LEASE_MS = 300_000;
/** Reconcilers are woken for it; this is for what somebody held at that moment. */
const COLLECT_EVERY_MS = 2_000;

interface Chore {
  readonly everyMs: number;
  readonly deed: (signal: AbortSignal) => Promise<void>;
}

/** Until the signal aborts. */
export async function runUpkeep(deps: UpkeepDeps, signal: AbortSignal): Promise<void> {
  await Promise.all(choresOf(deps).map(repeat));

  async function repeat({ everyMs, deed }: Chore): Promise<void> {
    while (!signal.aborted) {
      await deed(signal).catch(deps.onError);
      await pause(everyMs, signal);
    }
  }
}

/** All of it once: what a scheduled function calls. Nothing is begun once the signal has aborted. */
export async function doUpkeep(deps: UpkeepDeps, signal: AbortSignal): Promise<void> {
  for (const { deed } of choresOf(deps)) {
    if (signal.aborted) return;
    await deed(signal).catch(deps.onError);
  }
}

function choresOf(deps: UpkeepDeps): readonly Chore[] {
  const { upkeep, sweep } = deps;
  const controllers = deps.kinds.flatMap((kind) => kind.controllers.map(({ id }) => id));
  const chores: Chore[] = [
    { everyMs: ALIVE_EVERY_MS, deed: () => upkeep.reportAlive(controllers) },
    { everyMs: FILL_EVERY_MS, deed: fillItems },
    { everyMs: BLOCKERS_EVERY_MS, deed: () => upkeep.reportBlockedDeletions() },
    { everyMs: SWEEP_OWNERS_EVERY_MS, deed: sweepOwners },
    { everyMs: COLLECT_EVERY_MS, deed: (signal) => collectAll(upkeep, signal).then(() => undefined) },
    { everyMs: FILL_EVERY_MS, deed: () => upkeep.expireEvents() },
  ];
  if (sweep) chores.push({ everyMs: sweep.everyMs, deed: sweepAll });
  return chores;

  /** Items are touched by triggers; this finds objects that are older than their controller. */
  async function fillItems(): Promise<void> {
    for (const controller of controllers) await upkeep.fillItems(controller);
  }

  /** Of several processes one at a time: all would find the same. */
  async function sweepOwners(): Promise<void> {
    const lease = await deps.leases.acquire('owner-sweep', SWEEP_OWNERS_LEASE_MS);
    if (!lease) return;
    try {
      await upkeep.sweepOwners();
    } finally {
      await deps.leases.release(lease);
    }
  }

  async function sweepAll(signal: AbortSignal): Promise<void> {
    const graceMs = sweep?.graceMs ?? Infinity;
    await sweepOrphans({ ...deps, installation: await upkeep.installation(), graceMs }, signal);
  }
}
