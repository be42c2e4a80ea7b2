/** Removes what was made for a ManagedDatabase, or leaves it to its users, until nothing of it is ours. */

import { isJsonArray, isJsonObject } from '#core/json.ts';
import { ROLE_BINDING_KIND } from '#core/kinds/role-binding.ts';
import { DatabaseInUse, type DatabaseServer, type DatabaseServers } from '#core/ports/database-servers.ts';
import { markerText } from '#core/reconcile/marker.ts';
import type { FinalizeResult } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import { lookAtRole, lookFromOutside } from '#functions/reconcile/kinds/database-look.ts';
import {
  type DatabaseContext,
  type DatabasePlace,
  externalId,
  placeMade,
  withServer,
} from '#functions/reconcile/kinds/database-place.ts';
import { databaseRepair } from '#functions/reconcile/kinds/database-repair.ts';
import { draftName } from '#functions/reconcile/kinds/external-names.ts';
import { isEmpty } from '#functions/reconcile/kinds/role-repair.ts';

/** As `spec.force`, which cannot be written any more once the deletion is requested: "true". */
const FORCE = 'plumbline.dev/force';

/** Nobody tells when a door is shut by hand. */
const DOORS_PAUSE_MS = 10_000;
/** Nobody tells when sessions end. */
const SESSIONS_PAUSE_MS = 5_000;
/** A drop that is refused has kept everybody out for 5 s: it must not do so all the time. */
const REFUSED_PAUSE_MS = 30_000;

type Blocked = Extract<FinalizeResult, { readonly finalized: false }>;

const GONE: FinalizeResult = { finalized: true };

/** What bears another marker, or none, is not ours any more: it is left alone. */
export async function finalizeDatabase(ctx: DatabaseContext, servers: DatabaseServers): Promise<FinalizeResult> {
  const place = placeMade(ctx);
  if (place === undefined) return GONE;
  const reference = await referenceTo(ctx);
  if (reference !== undefined) {
    await withServer(ctx, servers, place, (server) => keepOpen(ctx, server, place));
    return { ...blocked('Referenced', reference), requeueAfterMs: DOORS_PAUSE_MS };
  }
  return withServer(ctx, servers, place, async (server) => {
    // First: it belongs to the role, which cannot go while it is there.
    const draftLeft = await removeDraft(ctx, server, place);
    if (draftLeft) return draftLeft;
    if (ctx.object.spec.deletionPolicy === 'Retain') {
      await retain(ctx, server, place);
      return GONE;
    }
    return (await removeDatabase(ctx, server, place)) ?? (await removeRole(ctx, server, place)) ?? GONE;
  });
}

/** Bindings have to get in to take their rights back: a door that somebody shut would keep all of it for ever. */
async function keepOpen(ctx: DatabaseContext, server: DatabaseServer, place: DatabasePlace): Promise<void> {
  const database = await lookFromOutside(ctx, server, place);
  if (database?.ownership !== 'ours') return;
  const change = databaseRepair(ctx, place, database);
  if (isEmpty(change)) return;
  await ctx.act(`open database ${place.database}`, () => server.databases.change(place.database, change));
}

/** Whose bindings have to go first, if any. Those that are being deleted count: their rights are not gone yet. */
async function referenceTo(ctx: DatabaseContext): Promise<string | undefined> {
  const { metadata, spec } = ctx.object;
  const bindings = await ctx.list(ROLE_BINDING_KIND);
  const naming = bindings.filter((binding) => binding.spec?.['database'] === metadata.name);
  if (naming.length > 0) return `the database is named by RoleBindings: ${namesOf(naming)}; delete them`;
  if (spec.deletionPolicy !== 'Retain') return undefined;
  // Nobody will take rights back once the database is not ours any more.
  const leaving = bindings.filter(({ status }) => {
    const places = status?.['places'];
    return isJsonArray(places) && places.some((each) => isJsonObject(each) && each['databaseUid'] === metadata.uid);
  });
  return leaving.length > 0 ? `RoleBindings have not taken back their rights yet: ${namesOf(leaving)}` : undefined;
}

function namesOf(bindings: readonly ResourceObject[]): string {
  return bindings.map(({ metadata }) => metadata.name).join(', ');
}

async function retain(ctx: DatabaseContext, server: DatabaseServer, place: DatabasePlace): Promise<void> {
  const database = await lookFromOutside(ctx, server, place);
  if (database?.ownership === 'ours') {
    await ctx.act('unmark the database', () => server.databases.change(place.database, { comment: null }));
  }
  if (database) ctx.release('database', externalId(place.server, place.database));
  const role = await lookAtRole(ctx, server, place);
  if (role?.ownership === 'ours') {
    await ctx.act('unmark the role', () => server.roles.change(place.owner, { comment: null }));
  }
  if (role) ctx.release('role', externalId(place.server, place.owner));
}

async function removeDatabase(
  ctx: DatabaseContext,
  server: DatabaseServer,
  place: DatabasePlace,
  comment: string = markerText(ctx.marker),
): Promise<Blocked | undefined> {
  const database = await lookFromOutside(ctx, server, place);
  if (!database) return undefined;
  const id = externalId(place.server, place.database);
  if (database.ownership !== 'ours') {
    ctx.release('database', id);
    return undefined;
  }
  const force = ctx.object.spec.force === true || ctx.object.metadata.annotations?.[FORCE] === 'true';
  const sessions = force ? 0 : await server.databases.countSessions(place.database);
  if (sessions > 0)
    return inUse(
      `${sessions} ${sessions === 1 ? 'session is' : 'sessions are'} connected to database "${place.database}"`,
      SESSIONS_PAUSE_MS,
    );
  try {
    await ctx.act(`drop database ${place.database}`, () => server.databases.drop(place.database, comment, { force }));
  } catch (error) {
    if (error instanceof DatabaseInUse) return inUse(error.message, REFUSED_PAUSE_MS);
    throw error;
  }
  const left = await lookFromOutside(ctx, server, place);
  return left && blocked('StillThere', `database "${place.database}" is there again; it is dropped again`);
}

function inUse(who: string, requeueAfterMs: number): Blocked {
  const message = `${who}; end them, or set the annotation ${FORCE}: "true" to have sessions ended`;
  return { ...blocked('SessionsConnected', message), requeueAfterMs };
}

async function removeRole(
  ctx: DatabaseContext,
  server: DatabaseServer,
  place: DatabasePlace,
): Promise<Blocked | undefined> {
  const role = await lookAtRole(ctx, server, place);
  if (!role) return undefined;
  if (role.ownership !== 'ours') {
    ctx.release('role', externalId(place.server, place.owner));
    return undefined;
  }
  await ctx.act(`drop role ${place.owner}`, () => server.roles.drop(place.owner, markerText(ctx.marker)));
  const left = await lookAtRole(ctx, server, place);
  return left && blocked('StillThere', `role "${place.owner}" is there again; it is dropped again`);
}

/** A crash between the making of a database and its naming leaves one under another name. */
async function removeDraft(
  ctx: DatabaseContext,
  server: DatabaseServer,
  place: DatabasePlace,
): Promise<Blocked | undefined> {
  const draft = { ...place, database: draftName(ctx.object.metadata.uid) };
  if (!(await lookFromOutside(ctx, server, draft))) return undefined;
  await ctx.act(`drop database ${draft.database}`, () => server.databases.dropDraft(draft.database));
  const left = await lookFromOutside(ctx, server, draft);
  return left && blocked('StillThere', `database "${draft.database}" is there again; it is dropped again`);
}

function blocked(reason: string, message: string): Blocked {
  return { finalized: false, blocked: { reason, message } };
}
