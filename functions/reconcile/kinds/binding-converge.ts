/**
 * Makes the rights of a subject's role on one database what all live bindings together give. Which those are is read only
 * when this pass alone may change that role on that server, so no pass undoes what another one gave.
 */

import { MANAGED_DATABASE_KIND } from '#core/kinds/managed-database.ts';
import { type GrantPlace, ROLE_BINDING_KIND } from '#core/kinds/role-binding.ts';
import type { DatabaseServer, DatabaseServers, RightsInDatabase } from '#core/ports/database-servers.ts';
import { OwnershipConflict } from '#core/reconcile/context.ts';
import { markerText } from '#core/reconcile/marker.ts';
import { known } from '#core/reconcile/observation.ts';
import type { ReconcileResult } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import type { BindingContext } from '#functions/reconcile/kinds/binding-place.ts';
import { isRoleUsed, ownersOf, rightsChanges, rolesAt } from '#functions/reconcile/kinds/binding-rights.ts';
import { refuseInvalid } from '#functions/reconcile/kinds/database-look.ts';
import { externalId, withServer } from '#functions/reconcile/kinds/database-place.ts';
import { isEmpty, roleRepair } from '#functions/reconcile/kinds/role-repair.ts';
import {
  lookAtSubject,
  removeSubject,
  type RoleShared,
  type Subject,
  tenantMarker,
} from '#functions/reconcile/kinds/subject-role.ts';

/** @throws {OwnershipConflict} when the role was made for somebody else. */
export async function giveRights(
  ctx: BindingContext,
  servers: DatabaseServers,
  place: GrantPlace,
): Promise<ReconcileResult> {
  return withServer(ctx, servers, { server: place.server, turn: turnOf(place) }, async (server) => {
    const subject = await lookAtSubject(ctx, server, place);
    if (subject?.ownership === 'foreign') {
      throw new OwnershipConflict(
        `role "${place.role}" on server "${place.server}" was made for another tenant, or for one of this name that is ` +
          'gone; it was left as it is. Drop it, or choose another spec.subject',
      );
    }
    const bindings = await ctx.list(ROLE_BINDING_KIND);
    if (await keepRole(ctx, server, place, subject, ownersOf(bindings, place))) await lookAtSubject(ctx, server, place);
    const rights = await lookAtRights(ctx, server, place);
    if (!rights) {
      const message = `database "${place.database}" is not on server "${place.server}"; it is waited for`;
      return { notReady: { reason: 'DatabaseNotReady', message } };
    }
    await changeRights(ctx, server, place, rights, bindings);
    return {};
  });
}

/**
 * The binding gives no rights there any more, as others can see. What they give stays, and is none of its business.
 * @returns nothing when all is done.
 */
export async function leavePlace(
  ctx: BindingContext,
  servers: DatabaseServers,
  place: GrantPlace,
): Promise<RoleShared | undefined> {
  return withServer(ctx, servers, { server: place.server, turn: turnOf(place) }, async (server) => {
    const subject = await lookAtSubject(ctx, server, place);
    if (subject?.ownership === 'foreign') {
      forgetPlace(ctx, place);
      return undefined;
    }
    const bindings = await ctx.list(ROLE_BINDING_KIND);
    const rights = await lookAtRights(ctx, server, place);
    if (rights && subject) await changeRights(ctx, server, place, rights, bindings);
    const hasRights = rolesAt(bindings, place).length > 0;
    if (hasRights) ctx.release('rights', rightsId(place));
    if (!subject) return undefined;
    const isUsed = isRoleUsed(bindings, place);
    if (rights && subject.ownership === 'ours' && (!isUsed || (!hasRights && rights.owns))) {
      await ctx.act(`take from role ${place.role} what it owns`, () =>
        server.inside(place.database).disown(place.role, place.owner, { forGood: !isUsed }),
      );
      await lookAtRights(ctx, server, place);
    }
    if (subject.ownership === 'ours' && !isUsed) return removeSubject(ctx, server, place, bindings);
    ctx.release('role', externalId(place.server, place.role));
    return undefined;
  });
}

/** Takes a place that was left out of the status. */
export function forgetPlace(ctx: BindingContext, place: GrantPlace): void {
  ctx.release('rights', rightsId(place));
  ctx.release('role', externalId(place.server, place.role));
}

/** @returns whether it was made or changed. */
async function keepRole(
  ctx: BindingContext,
  { roles }: DatabaseServer,
  place: GrantPlace,
  subject: Subject | undefined,
  groups: readonly string[],
): Promise<boolean> {
  const name = place.role;
  if (!subject) {
    const comment = markerText(tenantMarker(ctx, place));
    await ctx.act(`create role ${name}`, () => roles.create({ name, comment }));
    ctx.event('Normal', 'RoleCreated', `role "${name}" was made`);
    return true;
  }
  const repair = roleRepair(subject, groups);
  if (subject.ownership !== 'ours' || isEmpty(repair)) return false;
  await ctx.act(`change role ${name}`, () => roles.change(name, repair));
  ctx.event('Normal', 'RoleChanged', `role "${name}": ${Object.keys(repair).join(', ')}`);
  return true;
}

/** Undefined when there is no such database, or it is another one now. Rights there have gone with it. */
async function lookAtRights(
  ctx: BindingContext,
  server: DatabaseServer,
  place: GrantPlace,
): Promise<RightsInDatabase | undefined> {
  const { installation } = ctx.marker;
  const kind = `${MANAGED_DATABASE_KIND.group}/${MANAGED_DATABASE_KIND.kind}`;
  const marker = markerText({ installation, kind, uid: place.databaseUid });
  let rights: RightsInDatabase | undefined;
  const found = await ctx.observe('rights', rightsId(place), async () => {
    const database = await server.databases.read(place.database);
    if (database?.comment !== marker) return undefined;
    refuseInvalid(database, place);
    rights = await server.inside(place.database).readRights(place.role, place.owner);
    return rights.securables.some(({ held }) => held.length > 0) ? rights : undefined;
  });
  known(found, `rights of role "${place.role}" in database "${place.database}" on server "${place.server}"`);
  return rights;
}

async function changeRights(
  ctx: BindingContext,
  server: DatabaseServer,
  place: GrantPlace,
  rights: RightsInDatabase,
  bindings: readonly ResourceObject[],
): Promise<void> {
  const { role, owner, database } = place;
  const wanted = rolesAt(bindings, place);
  const changes = rightsChanges(rights.securables, wanted);
  if (changes.length === 0) return;
  await ctx.act(`change rights of ${role}`, () => server.inside(database).changeRights(role, owner, changes));
  const says = wanted.length === 0 ? 'none' : wanted.join(', ');
  ctx.event('Normal', 'RightsChanged', `role "${role}" has these rights on database "${database}" now: ${says}`);
  const after = await lookAtRights(ctx, server, place);
  const [left] = after ? rightsChanges(after.securables, wanted) : [];
  if (left) {
    const { securable, grant, revoke } = left;
    throw new Error(
      `rights of role "${role}" on ${securable.kind} ${securable.name} of database "${database}" did not become what ` +
        `they should be; missing: ${grant.join(', ') || 'none'}; too many: ${revoke.join(', ') || 'none'}`,
    );
  }
}

function rightsId({ server, database, role }: GrantPlace): string {
  return externalId(server, database, role);
}

/** Bindings of one subject take turns, whatever their databases: they share the role. */
function turnOf({ role }: GrantPlace): string {
  return `role ${role}`;
}
