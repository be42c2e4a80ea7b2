/** Where a RoleBinding gives rights: which role, in which database, on which server. */

import { isJsonArray, isJsonObject } from '#core/json.ts';
import { MANAGED_DATABASE_KIND } from '#core/kinds/managed-database.ts';
import type { GrantPlace, RoleBindingSpec, RoleBindingStatus } from '#core/kinds/role-binding.ts';
import { TENANT_KIND } from '#core/kinds/tenant.ts';
import type { PassContext } from '#core/reconcile/context.ts';
import type { Explanation } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import { subjectRoleName } from '#functions/reconcile/kinds/external-names.ts';

export type BindingContext = PassContext<RoleBindingSpec, RoleBindingStatus>;

/** A place, or why there is none yet. */
export type Target =
  | { readonly place: GrantPlace; readonly notReady?: undefined }
  | { readonly place?: undefined; readonly notReady: Explanation };

/** What the spec asks for; a database that is not ready is waited for. */
export async function targetOf(ctx: BindingContext): Promise<Target> {
  const { spec } = ctx.object;
  const database = await ctx.get(MANAGED_DATABASE_KIND, spec.database);
  const notReady = (message: string): Target => ({ notReady: { reason: 'DatabaseNotReady', message } });
  if (!database) return notReady(`there is no ManagedDatabase "${spec.database}"; it is waited for`);
  if (database.metadata.deletionTimestamp != null)
    return notReady(`ManagedDatabase "${spec.database}" is being deleted`);
  if (!isReady(database)) return notReady(`ManagedDatabase "${spec.database}" is not ready; it is waited for`);
  const status = database.status ?? {};
  const tenant = await ctx.get(TENANT_KIND, ctx.tenant);
  if (tenant?.metadata.uid === undefined) throw new Error(`the Tenant "${ctx.tenant}" cannot be found`);
  const place: GrantPlace = {
    subject: spec.subject,
    databaseName: spec.database,
    databaseUid: database.metadata.uid ?? '',
    tenantUid: tenant.metadata.uid,
    server: String(status['server']),
    database: String(status['database']),
    owner: String(status['owner']),
    role: subjectRoleName(ctx.tenant, spec.subject),
  };
  return { place };
}

/** At its own generation: a change of the database that is not made yet is waited for. */
function isReady({ metadata, status }: ResourceObject): boolean {
  const conditions = status?.['conditions'];
  const found = isJsonArray(conditions) ? conditions.filter(isJsonObject) : [];
  return found.some(
    (condition) =>
      condition['type'] === 'Ready' &&
      condition['status'] === 'True' &&
      condition['observedGeneration'] === metadata.generation,
  );
}

/**
 * The places of a binding with this spec: those that it had, marked where it gives no rights any more, and its target.
 * @param target where it gives them now; as long as that is not known, an old place of the same names is kept in mind.
 */
export function planPlaces(
  places: readonly GrantPlace[],
  spec: RoleBindingSpec,
  target: GrantPlace | undefined,
): readonly GrantPlace[] {
  const kept = places.map((each): GrantPlace => {
    const { leaving: _, ...place } = each;
    return isStale(place, spec, target) ? { ...place, leaving: true } : place;
  });
  return target === undefined || kept.some((place) => isSamePlace(place, target)) ? kept : [...kept, target];
}

function isStale(place: GrantPlace, spec: RoleBindingSpec, target: GrantPlace | undefined): boolean {
  if (place.subject !== spec.subject || place.databaseName !== spec.database) return true;
  return target !== undefined && !isSamePlace(place, target);
}

function isSamePlace(place: GrantPlace, target: GrantPlace): boolean {
  return (Object.keys(target) as (keyof GrantPlace)[]).every((field) => place[field] === target[field]);
}
