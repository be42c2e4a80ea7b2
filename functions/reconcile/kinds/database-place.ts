/** Where a ManagedDatabase lies, and what it is called there. */

import type { ManagedDatabaseSpec, ManagedDatabaseStatus } from '#core/kinds/managed-database.ts';
import type { DatabaseServer, DatabaseServers } from '#core/ports/database-servers.ts';
import type { PassContext } from '#core/reconcile/context.ts';
import type { ReconcileResult } from '#core/reconcile/outcome.ts';
import { databaseName, ownerRoleName } from '#functions/reconcile/kinds/external-names.ts';

export type DatabaseContext = PassContext<ManagedDatabaseSpec, ManagedDatabaseStatus>;

/** Names on the server: of the database, and of the role that owns it. */
export interface DatabasePlace {
  readonly server: string;
  readonly database: string;
  readonly owner: string;
}

/** As the spec says. */
export function placeOf({ object, tenant }: DatabaseContext): DatabasePlace {
  const { metadata, spec } = object;
  return {
    server: spec.server,
    database: databaseName(tenant, metadata.name),
    owner: ownerRoleName(tenant, spec.owner ?? metadata.name),
  };
}

/** Where things were made, or would have been; undefined when nothing was ever to be made. */
export function placeMade({ object }: DatabaseContext): DatabasePlace | undefined {
  const { server, database, owner } = object.status;
  return server === undefined || database === undefined || owner === undefined
    ? undefined
    : { server, database, owner };
}

/** What will be made is written down before it is made: no crash leaves something that nobody knows of. */
export function plan(ctx: DatabaseContext, place: DatabasePlace): ReconcileResult {
  for (const field of ['server', 'database', 'owner'] as const) ctx.report(field, place[field]);
  return { notReady: { reason: 'Planned', message: 'its names are chosen; it is made next' }, requeueAfterMs: 0 };
}

export function isSamePlace(a: DatabasePlace, b: DatabasePlace): boolean {
  return a.server === b.server && a.database === b.database && a.owner === b.owner;
}

/** Lends the connection of this pass to a server. */
export async function withServer<T>(
  ctx: Pick<PassContext, 'object' | 'fencingToken' | 'signal'>,
  servers: DatabaseServers,
  { server, turn }: { readonly server: string; readonly turn?: string },
  use: (server: DatabaseServer) => Promise<T>,
): Promise<T> {
  const { object, fencingToken, signal } = ctx;
  const opened = servers.open(server, { uid: object.metadata.uid, fencingToken, signal, turn });
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

/** How `status.resources` names things of a server. */
export function externalId(...path: readonly string[]): string {
  return path.join('/');
}
