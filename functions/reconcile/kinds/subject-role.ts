/** The role of a subject on a server. It belongs to the tenant's incarnation, and goes with its last binding there. */

import type { GrantPlace } from '#core/kinds/role-binding.ts';
import { TENANT_KIND } from '#core/kinds/tenant.ts';
import { type DatabaseServer, type ExternalRole, RoleInUse } from '#core/ports/database-servers.ts';
import { type Marker, markerText, type Ownership, ownershipOf } from '#core/reconcile/marker.ts';
import { known } from '#core/reconcile/observation.ts';
import type { ResourceObject } from '#core/resource.ts';
import type { BindingContext } from '#functions/reconcile/kinds/binding-place.ts';
import { othersLeaving } from '#functions/reconcile/kinds/binding-rights.ts';
import { externalId } from '#functions/reconcile/kinds/database-place.ts';

/** One without marker was there before, and is only ever granted to. */
export type Subject = ExternalRole & { readonly ownership: Ownership };

/** @throws {ObservationFailed} */
export async function lookAtSubject(
  ctx: BindingContext,
  { roles }: DatabaseServer,
  place: GrantPlace,
): Promise<Subject | undefined> {
  const id = externalId(place.server, place.role);
  const role = known(
    await ctx.observe('role', id, () => roles.read(place.role)),
    `role "${place.role}" on server "${place.server}"`,
  );
  return role && { ...role, ownership: ownershipOf(role.comment, tenantMarker(ctx, place)) };
}

/** Why the role has to be waited for: other bindings are leaving it too. */
export interface RoleShared {
  readonly others: readonly string[];
  readonly message: string;
}

/**
 * Drops it, unless other bindings may still have to take back rights of it. It is never left to them: they may have done
 * so already, and be about to end.
 * @returns nothing when it is gone.
 * @throws {RoleInUse} when it has rights or owns something that no binding gave.
 */
export async function removeSubject(
  ctx: BindingContext,
  server: DatabaseServer,
  place: GrantPlace,
  bindings: readonly ResourceObject[],
): Promise<RoleShared | undefined> {
  const comment = markerText(tenantMarker(ctx, place));
  try {
    await ctx.act(`drop role ${place.role}`, () => server.roles.drop(place.role, comment));
  } catch (error) {
    const others = othersLeaving(bindings, place, ctx.object.metadata.uid);
    if (error instanceof RoleInUse && others.length > 0) return { others, message: error.message };
    throw error;
  }
  ctx.event('Normal', 'RoleDropped', `role "${place.role}" was dropped`);
  if (await lookAtSubject(ctx, server, place)) throw new Error(`role "${place.role}" is there again`);
  return undefined;
}

/** Of the role: several bindings share it, so no single one of them can be its owner. */
export function tenantMarker({ marker }: BindingContext, { tenantUid }: GrantPlace): Marker {
  return { installation: marker.installation, kind: `${TENANT_KIND.group}/${TENANT_KIND.kind}`, uid: tenantUid };
}
