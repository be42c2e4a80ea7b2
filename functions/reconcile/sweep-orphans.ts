/**
 * Removes external objects that bear our marker and whose object is gone: such as what a restored backup has forgotten.
 * Off unless the installation says so. Nothing is concluded from a list that is not complete, and it holds up no other
 * part; what is found has to stay so for the grace time, over restarts, and is looked at once more before it goes.
 */

import type { Kind } from '#core/kind.ts';
import type { Leases } from '#core/ports/leases.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { Orphans, SweptPart } from '#core/ports/orphans.ts';
import type { ExternalObject, OrphanSweep } from '#core/reconcile/sweep.ts';
import { inTime } from '#functions/reconcile/in-time.ts';

export interface SweepDeps {
  readonly orphans: Orphans;
  readonly leases: Leases;
  readonly kinds: readonly Kind[];
  readonly logger: Logger;
  readonly installation: string;
  readonly graceMs: number;
}

interface Found {
  readonly place: SweptPart;
  readonly object: ExternalObject;
}

const LEASE_MS = 600_000;
/** Of one list, and of one removal. */
const TIMEOUT_MS = 60_000;

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
  const { installation } = deps;
  const parts = sweep.parts ?? [''];
  await deps.orphans.keepParts(id, parts);
  // At once: whoever cannot be reached takes long to say so.
  const lists = await Promise.all(parts.map(findOrphans));
  let removed = 0;
  for (const { place, object } of lists.flat()) {
    if (signal.aborted) break;
    const about = { class: object.class, id: object.id, ownerUid: object.ownerUid };
    try {
      if (!(await deps.orphans.isOrphan(place, object))) continue;
      log.warn(about, 'removing what has no owner any more');
      await inTime((ending) => sweep.remove(object, { installation, signal: ending, log }), TIMEOUT_MS, signal);
      await deps.orphans.forget(place, object);
      removed += 1;
    } catch (error) {
      log.warn({ ...about, err: error }, 'an orphan could not be removed; it is tried again');
    }
  }
  return removed;

  /** In the order of the list: what is named later may depend on what is named before. */
  async function findOrphans(part: string): Promise<readonly Found[]> {
    const place = { controller: id, part };
    try {
      const found = await inTime(
        (ending) => sweep.list({ installation, signal: ending, log }, part),
        TIMEOUT_MS,
        signal,
      );
      const orphans = await deps.orphans.note(place, found, deps.graceMs);
      const isOrphan = ({ class: objectClass, id: objectId }: ExternalObject): boolean =>
        orphans.some((each) => each.class === objectClass && each.id === objectId);
      return found.filter(isOrphan).map((object) => ({ place, object }));
    } catch (error) {
      log.warn({ part, err: error }, 'looking for orphans failed; nothing is concluded from it');
      return [];
    }
  }
}
