/** Makes and repairs the role and the database of a ManagedDatabase. What is as it should be is not touched. */

import type { DatabaseServer, ExternalRole, RoleChange } from '#core/ports/database-servers.ts';
import { ExtensionRefused } from '#core/ports/database-servers.ts';
import { markerText } from '#core/reconcile/marker.ts';
import { TerminalError } from '#core/reconcile/outcome.ts';
import { type Found, type FoundDatabase, look } from '#functions/reconcile/kinds/database-look.ts';
import type { DatabaseContext, DatabasePlace } from '#functions/reconcile/kinds/database-place.ts';
import { draftName } from '#functions/reconcile/kinds/external-names.ts';
import { databaseRepair } from '#functions/reconcile/kinds/database-repair.ts';
import { refuseStrangers } from '#functions/reconcile/kinds/database-strangers.ts';
import { newPassword } from '#functions/reconcile/kinds/password.ts';
import { isEmpty, roleRepair } from '#functions/reconcile/kinds/role-repair.ts';

/**
 * @throws {OwnershipConflict} when somebody else has one of the names; then nothing is changed.
 * @throws {TerminalError} for an extension that cannot be had.
 */
export async function converge(ctx: DatabaseContext, server: DatabaseServer, place: DatabasePlace): Promise<void> {
  const before = await look(ctx, server, place);
  await refuseStrangers(ctx, server, place, before);
  const isRoleNew = await convergeRole(ctx, server, place, before.role);
  const isDatabaseNew = await convergeDatabase(ctx, server, place, before.database);
  ctx.report('host', server.host);
  ctx.report('port', server.port);
  const now = isRoleNew || isDatabaseNew ? await look(ctx, server, place) : before;
  if (now.role?.ownership !== 'ours' || now.database?.ownership !== 'ours') {
    throw new Error(
      `somebody else is at database "${place.database}" on server "${place.server}"; it is looked at again`,
    );
  }
  await convergeExtensions(ctx, server, place, now.database);
}

/** @returns whether something was changed; so do the next one. */
async function convergeRole(
  ctx: DatabaseContext,
  { roles }: DatabaseServer,
  { owner }: DatabasePlace,
  role: Found<ExternalRole> | undefined,
): Promise<boolean> {
  const { spec, status } = ctx.object;
  const isRotated = spec.rotationToken !== undefined && spec.rotationToken !== status.rotationToken;
  const kept = isRotated ? undefined : status.password;
  const password = kept ?? newPassword();
  // Only afterwards: what was not seen to be set is made anew.
  const report = (): void => {
    ctx.report('password', password);
    ctx.report('rotationToken', isRotated ? spec.rotationToken : status.rotationToken);
  };
  if (!role) {
    const comment = markerText(ctx.marker);
    await ctx.act(`create role ${owner}`, () => roles.create({ name: owner, comment, password }));
    report();
    ctx.event('Normal', 'RoleCreated', `role "${owner}" was made`);
    return true;
  }
  const comment = role.ownership === 'ours' ? {} : { comment: markerText(ctx.marker) };
  const isToBeSet = kept === undefined || role.hasPassword === false;
  const change: RoleChange = { ...roleRepair(role), ...comment, ...(isToBeSet && { password }) };
  if (isEmpty(change)) return false;
  await ctx.act(`change role ${owner}`, () => roles.change(owner, change));
  report();
  ctx.event('Normal', 'RoleChanged', `role "${owner}": ${Object.keys(change).join(', ')}`);
  return true;
}

async function convergeDatabase(
  ctx: DatabaseContext,
  { databases }: DatabaseServer,
  place: DatabasePlace,
  database: FoundDatabase | undefined,
): Promise<boolean> {
  const { database: name, owner } = place;
  if (!database) {
    const { connectionLimit } = ctx.object.spec;
    const comment = markerText(ctx.marker);
    const draft = draftName(ctx.object.metadata.uid);
    await ctx.act(`create database ${name}`, () => databases.create({ name, draft, owner, connectionLimit, comment }));
    ctx.event('Normal', 'DatabaseCreated', `database "${name}" was made`);
    return true;
  }
  const change = databaseRepair(ctx, place, database);
  if (isEmpty(change)) return false;
  await ctx.act(`change database ${name}`, () => databases.change(name, change));
  ctx.event('Normal', 'DatabaseChanged', `database "${name}": ${Object.keys(change).join(', ')}`);
  return true;
}

async function convergeExtensions(
  ctx: DatabaseContext,
  server: DatabaseServer,
  { database: name, owner }: DatabasePlace,
  { extensions: present = [] }: FoundDatabase,
): Promise<void> {
  const { extensions: wanted = [] } = ctx.object.spec;
  const missing = wanted.filter((extension) => !present.includes(extension));
  for (const extension of missing) {
    try {
      await ctx.act(`create extension ${extension}`, () => server.inside(name).createExtension(extension, owner));
    } catch (error) {
      if (error instanceof ExtensionRefused) {
        throw new TerminalError('ExtensionRefused', `spec.extensions: ${error.message}`, { cause: error });
      }
      throw error;
    }
    ctx.event('Normal', 'ExtensionCreated', `extension "${extension}" was made in database "${name}"`);
  }
}
