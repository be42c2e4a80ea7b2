/** Housekeeping of reconciling while a process stays. Any number of processes may do so. */

import type { Leases } from '#core/ports/leases.ts';
import type { Orphans } from '#core/ports/orphans.ts';
import { pause } from '#loop/pause.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
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

/** Until the signal aborts. */
export async function runUpkeep(deps: UpkeepDeps, signal: AbortSignal): Promise<void> {
  const { upkeep } = deps;
  const controllers = deps.kinds.flatMap((kind) => kind.controllers.map(({ id }) => id));
  const chores = [
    chore(ALIVE_EVERY_MS, () => upkeep.reportAlive(controllers)),
    // Items are touched by triggers; this finds objects that are older than their controller.
    chore(FILL_EVERY_MS, async () => {
      for (const controller of controllers) await upkeep.fillItems(controller);
    }),
    chore(BLOCKERS_EVERY_MS, () => upkeep.reportMissingControllers()),
    chore(FILL_EVERY_MS, () => upkeep.expireEvents()),
  ];
  const { sweep } = deps;
  if (sweep) {
    chores.push(
      chore(sweep.everyMs, async () => {
        await sweepOrphans({ ...deps, installation: await upkeep.installation(), graceMs: sweep.graceMs }, signal);
      }),
    );
  }
  await Promise.all(chores);

  async function chore(everyMs: number, deed: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await deed().catch(deps.onError);
      await pause(everyMs, signal);
    }
  }
}
