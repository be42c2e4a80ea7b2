/** ManagedDatabase: what makes a real database, and the role that owns it, match the object. */

import { defineKind, type Kind } from '#core/kind.ts';
import {
  MANAGED_DATABASE_KIND,
  managedDatabaseKind,
  type ManagedDatabaseSpec,
  type ManagedDatabaseStatus,
} from '#core/kinds/managed-database.ts';
import { ROLE_BINDING_KIND } from '#core/kinds/role-binding.ts';
import type { DatabaseServer, DatabaseServers } from '#core/ports/database-servers.ts';
import type { WatchTarget } from '#core/reconcile/controller.ts';
import { TerminalError, type ReconcileResult } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import { converge } from '#functions/reconcile/kinds/database-converge.ts';
import { look } from '#functions/reconcile/kinds/database-look.ts';
import {
  type DatabaseContext,
  type DatabasePlace,
  externalId,
  isSamePlace,
  placeMade,
  placeOf,
  plan,
  withServer,
} from '#functions/reconcile/kinds/database-place.ts';
import { finalizeDatabase } from '#functions/reconcile/kinds/database-removal.ts';
import { markedObjects } from '#functions/reconcile/kinds/marked-objects.ts';

/** By hand somebody can change a database without an event: it is looked at every minute. */
const RESYNC_MS = 60_000;

export interface DatabaseKindDeps {
  readonly servers: DatabaseServers;
}

/**
 * The kind with its controller `database`. It makes, keeps and removes only what bears its object's marker, which is the
 * comment on database and role.
 */
export function managedDatabase({ servers }: DatabaseKindDeps): Kind<ManagedDatabaseSpec, ManagedDatabaseStatus> {
  return defineKind({
    ...managedDatabaseKind,
    controllers: [
      {
        name: 'database',
        statusFields: ['server', 'database', 'owner', 'host', 'port', 'password', 'rotationToken'],
        resyncMs: RESYNC_MS,
        // A binding that goes may be what its deletion waited for.
        watches: [{ kind: ROLE_BINDING_KIND, map: databaseOfLeaving }],
        reconcile: (ctx) => reconcileDatabase(ctx, servers),
        finalize: (ctx) => finalizeDatabase(ctx, servers),
        sweep: markedObjects(servers, MANAGED_DATABASE_KIND, ['database', 'role']),
      },
    ],
  });
}

async function reconcileDatabase(ctx: DatabaseContext, servers: DatabaseServers): Promise<ReconcileResult> {
  const place = placeOf(ctx);
  const made = placeMade(ctx);
  const isMoved = made !== undefined && !isSamePlace(made, place);
  if (isMoved) await withServer(ctx, servers, made, (server) => leave(ctx, server, made, place));
  if (!servers.names.includes(place.server)) {
    const known = servers.names.length === 0 ? 'none is configured' : `there are: ${servers.names.join(', ')}`;
    throw new TerminalError('UnknownServer', `spec.server is "${place.server}"; ${known}`);
  }
  if (made === undefined || isMoved) return plan(ctx, place);
  await withServer(ctx, servers, place, (server) => converge(ctx, server, place));
  return {};
}

/** @throws {TerminalError} when something of ours is at the old place. */
async function leave(
  ctx: DatabaseContext,
  server: DatabaseServer,
  made: DatabasePlace,
  place: DatabasePlace,
): Promise<void> {
  const { role, database } = await look(ctx, server, made);
  if (role?.ownership === 'ours' || database?.ownership === 'ours') {
    const field = made.server === place.server ? 'owner' : 'server';
    throw new TerminalError(
      'ImmutableField',
      `spec.${field} cannot change: the database lies on server "${made.server}" and belongs to "${made.owner}"; ` +
        `set spec.${field} back, or delete this object and make another`,
    );
  }
  ctx.release('database', externalId(made.server, made.database));
  ctx.release('role', externalId(made.server, made.owner));
}

function databaseOfLeaving({ metadata, spec }: ResourceObject): readonly WatchTarget[] {
  const name = spec?.['database'];
  return metadata.deletionTimestamp != null && typeof name === 'string' ? [{ name }] : [];
}
