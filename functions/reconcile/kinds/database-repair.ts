/** A database of ours belongs to its owner, is open to nobody else, and can be entered and dropped. */

import type { DatabaseChange, ExternalDatabase } from '#core/ports/database-servers.ts';
import { markerText, type Ownership } from '#core/reconcile/marker.ts';
import type { DatabaseContext, DatabasePlace } from '#functions/reconcile/kinds/database-place.ts';

/** What makes it so again, seen from outside; empty when it is so. */
export function databaseRepair(
  ctx: DatabaseContext,
  { owner }: DatabasePlace,
  database: ExternalDatabase & { readonly ownership: Ownership },
): DatabaseChange {
  const { connectionLimit } = ctx.object.spec;
  const isGiven = database.owner !== owner;
  return {
    ...(database.ownership !== 'ours' && { comment: markerText(ctx.marker) }),
    ...(isGiven && { owner }),
    ...(database.connectionLimit !== connectionLimit && { connectionLimit: connectionLimit ?? null }),
    ...(database.isTemplate && { endTemplate: true }),
    ...(!database.allowsConnections && { allowConnections: true }),
    ...(database.isOpenToAll && { closeToAll: true }),
    ...((!database.ownerHasAll || isGiven) && { giveOwnerAll: owner }),
  };
}
