/** Whether what has the names of a ManagedDatabase may be taken. */

import type { DatabaseServer } from '#core/ports/database-servers.ts';
import { OwnershipConflict } from '#core/reconcile/context.ts';
import { known } from '#core/reconcile/observation.ts';
import type { Sight } from '#functions/reconcile/kinds/database-look.ts';
import { type DatabaseContext, type DatabasePlace, externalId } from '#functions/reconcile/kinds/database-place.ts';

/** @throws {OwnershipConflict} when somebody else has one of the names, and it is not to be adopted. */
export async function refuseStrangers(
  ctx: DatabaseContext,
  server: DatabaseServer,
  place: DatabasePlace,
  sight: Sight,
): Promise<void> {
  const { role, database } = sight;
  const where = `on server "${place.server}"`;
  if (role && role.ownership !== 'ours' && !(await comesWithDatabase(ctx, server, place, sight))) {
    throw new OwnershipConflict(
      `role "${place.owner}" ${where} is there already and was not made for this object; it was left as it is. ` +
        'Choose another spec.owner, or rename or drop that role',
    );
  }
  if (!database || database.ownership === 'ours') return;
  if (database.ownership === 'unowned' && ctx.object.spec.adoptionPolicy === 'AdoptUnowned') return;
  const advice =
    database.ownership === 'unowned'
      ? 'rename it, or set spec.adoptionPolicy to AdoptUnowned'
      : 'it bears the marker of another object: delete that one first';
  throw new OwnershipConflict(
    `database "${place.database}" ${where} is there already and was not made for this object; it was left as it is. ${advice}`,
  );
}

/**
 * Whether the role is adopted with its database, as one that `Retain` has left: it is nobody's, owns that database, and
 * has no power over anything else, for its password will be in the status.
 */
async function comesWithDatabase(
  ctx: DatabaseContext,
  { roles }: DatabaseServer,
  place: DatabasePlace,
  { role, database }: Sight,
): Promise<boolean> {
  if (ctx.object.spec.adoptionPolicy !== 'AdoptUnowned') return false;
  if (role?.ownership !== 'unowned' || database?.ownership !== 'unowned' || database.owner !== place.owner)
    return false;
  if (role.surplus.length > 0 || role.groups.length > 0) return false;
  const isConfined = await ctx.observe('role', externalId(place.server, place.owner), () =>
    roles.isConfinedTo(place.owner, place.database),
  );
  return known(isConfined, `what role "${place.owner}" on server "${place.server}" has`) ?? false;
}
