/**
 * Removes external objects that bear our marker and whose object is gone: such as what a restored backup has forgotten.
 * Off unless the installation says so. A list that is not complete ends the sweep of its controller; what is found has to
 * stay so for the grace time, over restarts, and is looked at once more before it goes.
 */

import type { Kind } from '#core/kind.ts';
import type { Leases } from '#core/ports/leases.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { Orphans } from '#core/ports/orphans.ts';
import type { ExternalObject, OrphanSweep } from '#core/reconcile/sweep.ts';

export interface SweepDeps {
  readonly orphans: Orphans;
  readonly leases: Leases;
  readonly kinds: readonly Kind[];
  readonly logger: Logger;
  readonly installation: string;
  readonly graceMs: number;
}

const LEASE_MS = 600_000;

/** One round over all controllers; of several processes one at a time. @returns how many objects were removed. */
export async function sweepOrphans(deps: SweepDeps, signal: AbortSignal): Promise<number> {
  const lease = await deps.leases.acquire('orphan-sweep', LEASE_MS);
  if (!lease) return 0;
  let removed = 0;
  try {
    for (const controller of deps.kinds.flatMap((kind) => kind.controllers)) {
      if (signal.aborted) break;
      if (controller.sweep) removed += await sweepOne(deps, controller.id, controller.sweep, signal);
    }
  } finally {
    await deps.leases.release(lease);
  }
  return removed;
}

async function sweepOne(deps: SweepDeps, id: string, sweep: OrphanSweep, signal: AbortSignal): Promise<number> {
  const log = deps.logger.child({ controller: id });
  const ctx = { installation: deps.installation, signal, log };
  let removed = 0;
  for (const object of await findOrphans()) {
    if (signal.aborted) break;
    const about = { class: object.class, id: object.id, ownerUid: object.ownerUid };
    try {
      if (!(await deps.orphans.isOrphan(id, object))) continue;
      log.warn(about, 'removing what has no owner any more');
      await sweep.remove(object, ctx);
      await deps.orphans.forget(id, object);
      removed += 1;
    } catch (error) {
      log.warn({ ...about, err: error }, 'an orphan could not be removed; it is tried again');
    }
  }
  return removed;

  /** In the order of the list: what is named later may depend on what is named before. */
  async function findOrphans(): Promise<readonly ExternalObject[]> {
    try {
      const found = await sweep.list(ctx);
      const orphans = await deps.orphans.note(id, found, deps.graceMs);
      return found.filter((object) => orphans.some((each) => each.class === object.class && each.id === object.id));
    } catch (error) {
      log.warn({ err: error }, 'looking for orphans failed; nothing is concluded from it');
      return [];
    }
  }
}
