/** What is there of a ManagedDatabase, and whose it is. */

import type { DatabaseServer, ExternalDatabase, ExternalRole } from '#core/ports/database-servers.ts';
import { ownershipOf, type Ownership } from '#core/reconcile/marker.ts';
import { known } from '#core/reconcile/observation.ts';
import { type DatabaseContext, type DatabasePlace, externalId } from '#functions/reconcile/kinds/database-place.ts';
import { databaseRepair } from '#functions/reconcile/kinds/database-repair.ts';
import { isEmpty } from '#functions/reconcile/kinds/role-repair.ts';

export type Found<External> = External & { readonly ownership: Ownership };

/** With the extensions that it has, when nothing else about it is to be put right. */
export type FoundDatabase = Found<ExternalDatabase> & { readonly extensions: readonly string[] | undefined };

export interface Sight {
  readonly role: Found<ExternalRole> | undefined;
  readonly database: FoundDatabase | undefined;
}

/**
 * Reads both, each with the connection that it will be changed by: afterwards no earlier pass can write any more.
 * @throws {ObservationFailed}
 */
export async function look(ctx: DatabaseContext, server: DatabaseServer, place: DatabasePlace): Promise<Sight> {
  return { role: await lookAtRole(ctx, server, place), database: await lookAtDatabase(ctx, server, place) };
}

export async function lookAtRole(
  ctx: DatabaseContext,
  { roles }: DatabaseServer,
  { server, owner }: DatabasePlace,
): Promise<Found<ExternalRole> | undefined> {
  const { password } = ctx.object.status;
  const role = await ctx.observe('role', externalId(server, owner), () => roles.read(owner, password));
  return withOwnership(ctx, known(role, `role "${owner}" on server "${server}"`));
}

async function lookAtDatabase(
  ctx: DatabaseContext,
  server: DatabaseServer,
  place: DatabasePlace,
): Promise<FoundDatabase | undefined> {
  const id = externalId(place.server, place.database);
  const found = await ctx.observe('database', id, async () => {
    const database = withOwnership(ctx, await server.databases.read(place.database));
    if (!database) return undefined;
    refuseInvalid(database, place);
    // Whatever is wrong may keep us out: the owner's rights, with which we enter, a limit, a door that is shut.
    const isSound = isEmpty(databaseRepair(ctx, place, database));
    return { ...database, extensions: isSound ? await server.inside(place.database).extensions() : undefined };
  });
  return known(found, `database "${place.database}" on server "${place.server}"`);
}

/** What is left in it may be wanted: only a deletion of ours drops it without asking. @throws for an invalid one. */
export function refuseInvalid(
  { isInvalid }: ExternalDatabase,
  { server, database }: Pick<DatabasePlace, 'server' | 'database'>,
): void {
  if (!isInvalid) return;
  throw new Error(
    `database "${database}" on server "${server}" is invalid, for dropping it was interrupted; ` +
      `finish it there: drop database "${database}"`,
  );
}

/** The database from outside only: with nobody of ours connected it can be dropped. */
export async function lookFromOutside(
  ctx: DatabaseContext,
  { databases }: DatabaseServer,
  { server, database: name }: Pick<DatabasePlace, 'server' | 'database'>,
): Promise<Found<ExternalDatabase> | undefined> {
  const database = await ctx.observe('database', externalId(server, name), () => databases.read(name));
  return withOwnership(ctx, known(database, `database "${name}" on server "${server}"`));
}

function withOwnership<External extends { readonly comment: string | null }>(
  ctx: DatabaseContext,
  external: External | undefined,
): Found<External> | undefined {
  return external && { ...external, ownership: ownershipOf(external.comment, ctx.marker) };
}
