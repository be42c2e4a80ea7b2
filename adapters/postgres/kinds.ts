/** Writes the kinds of this program to the registry that triggers and raw SQL obey. */

import type { Sql } from '#adapters/postgres/client.ts';
import { asRole } from '#adapters/postgres/as-role.ts';

/** What the database must know of a kind. */
export interface RegisteredKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly redact: readonly string[];
  readonly finalizers: readonly string[];
  readonly controllers: readonly RegisteredController[];
  readonly controllersElsewhere: readonly Pick<RegisteredController, 'id' | 'conditions' | 'statusFields'>[];
}

/** What the database must know of a controller: what it touches, and what it may write. */
export interface RegisteredController {
  readonly id: string;
  readonly finalizer: string | undefined;
  readonly summary: string;
  readonly conditions: readonly string[];
  readonly statusFields: readonly string[];
  readonly resyncMs: number;
  readonly watches: readonly { readonly kind: { readonly group: string; readonly kind: string } }[];
}

/** The kinds of this program do not fit to what the database knows. */
export class KindMismatch extends Error {
  override readonly name = 'KindMismatch';
}

/**
 * Adds or updates these kinds; kinds of other programs on the same database stay. Secret paths are only added: a program
 * that lacks one must not show what another has hidden. To take one away is an operator's deed, in table `kind`.
 * Controllers of other programs stay too: another version of the code may run beside this one.
 * @throws {KindMismatch} when another kind has the plural already, when the kind's scope would change, or when two controllers
 * would write the same part of a status.
 */
export async function registerKinds(databaseUrl: string, kinds: readonly RegisteredKind[]): Promise<void> {
  await asRole(
    databaseUrl,
    { applicationName: 'plumbline register kinds', role: 'plumbline_migrator' },
    async (sql) => {
      for (const kind of kinds) await registerKind(sql, kind);
    },
  );
}

async function registerKind(sql: Sql, kind: RegisteredKind): Promise<void> {
  const [row] = await sql<{ scope: string }[]>`
    insert into plumbline.kind as k (api_group, kind, version, plural, scope, redact, finalizers)
    values (${kind.group}, ${kind.kind}, ${kind.version}, ${kind.plural}, ${kind.scope}, ${[...kind.redact]}::text[],
      ${[...kind.finalizers]}::text[])
    on conflict (api_group, kind) do update set version = excluded.version, plural = excluded.plural,
      redact = array(select distinct path from unnest(k.redact || excluded.redact) path order by path), finalizers = excluded.finalizers
    returning scope`;
  if (row?.scope !== kind.scope) {
    throw new KindMismatch(
      `kind ${kind.group}/${kind.kind} is ${row?.scope ?? 'unknown'} in this database; its scope cannot change`,
    );
  }
  for (const controller of kind.controllers) await registerController(sql, kind, controller);
  await registerElsewhere(sql, kind);
}

/**
 * For a login that cannot register: these kinds are known as this program has them. Secret paths may be more.
 * @throws {KindMismatch} that names those that are not.
 */
export async function assertKindsAreRegistered(databaseUrl: string, kinds: readonly RegisteredKind[]): Promise<void> {
  await asRole(databaseUrl, { applicationName: 'plumbline kinds check', role: 'plumbline_worker' }, (sql) =>
    assertKindsAreKnown(sql, kinds),
  );
}

/** The same, over connections that there are. @param sql of `plumbline_worker`. */
export async function assertKindsAreKnown(sql: Sql, kinds: readonly RegisteredKind[]): Promise<void> {
  const known = await sql<KnownKind[]>`
    select api_group as "group", kind, version, plural, scope, redact, finalizers,
      array(select name from plumbline.controller c where (c.api_group, c.kind) = (k.api_group, k.kind)) as controllers
    from plumbline.kind k`;
  const wrong = kinds.filter((kind) => !known.some((row) => isSame(kind, row)));
  if (wrong.length === 0) return;
  const names = wrong.map(({ group, kind }) => `${group}/${kind}`).join(', ');
  throw new KindMismatch(
    `the database does not know ${names} as this program does; run npm run set-up of this program, with the same KINDS`,
  );
}

interface KnownKind extends Pick<RegisteredKind, 'group' | 'kind' | 'version' | 'plural' | 'scope'> {
  readonly redact: readonly string[];
  readonly finalizers: readonly string[];
  readonly controllers: readonly string[];
}

function isSame(kind: RegisteredKind, row: KnownKind): boolean {
  return (
    (['group', 'kind', 'version', 'plural', 'scope'] as const).every((name) => kind[name] === row[name]) &&
    kind.redact.every((path) => row.redact.includes(path)) &&
    kind.finalizers.length === row.finalizers.length &&
    kind.finalizers.every((finalizer) => row.finalizers.includes(finalizer)) &&
    kind.controllers.every(({ id }) => row.controllers.includes(id))
  );
}

/** Nobody can tell whether they run: those that this program does not name own nothing any more. */
async function registerElsewhere(sql: Sql, { group, kind, controllersElsewhere }: RegisteredKind): Promise<void> {
  const names = controllersElsewhere.map(({ id }) => id);
  await sql`
    delete from plumbline.controller_elsewhere
    where api_group = ${group} and kind = ${kind} and name <> all (${names}::text[])`;
  for (const { id, conditions, statusFields } of controllersElsewhere) {
    await sql`
      insert into plumbline.controller_elsewhere as c (name, api_group, kind, condition_types, status_fields)
      values (${id}, ${group}, ${kind}, ${[...conditions]}::text[], ${[...statusFields]}::text[])
      on conflict (name) do update set api_group = excluded.api_group, kind = excluded.kind,
        condition_types = excluded.condition_types, status_fields = excluded.status_fields`;
  }
}

async function registerController(sql: Sql, kind: RegisteredKind, controller: RegisteredController): Promise<void> {
  const { id, finalizer = null, resyncMs } = controller;
  const types = [controller.summary, ...controller.conditions];
  const fields = [...controller.statusFields];
  // What belonged to one that does not run any more, under another name for instance, is to be had.
  await sql`
    update plumbline.controller set condition_types = '{}', status_fields = '{}'
    where api_group = ${kind.group} and kind = ${kind.kind} and name <> ${id}
      and not plumbline.is_running(last_seen_at)
      and (condition_types && ${types}::text[] or status_fields && ${fields}::text[])`;
  const [rival] = await sql<{ name: string; shares: string[] }[]>`
    select name, array(select unnest(condition_types || status_fields) intersect select unnest(${types}::text[] || ${fields}::text[]))
      as shares
    from plumbline.controller where api_group = ${kind.group} and kind = ${kind.kind} and name <> ${id}
      and (condition_types && ${types}::text[] or status_fields && ${fields}::text[])`;
  if (rival) {
    throw new KindMismatch(
      `controllers ${rival.name} and ${id} of kind ${kind.kind} both report ${rival.shares.join(', ')}, and the first one was running a moment ago; if that is this one's former name, try again in three minutes`,
    );
  }
  await sql`
    insert into plumbline.controller as c (name, api_group, kind, finalizer, condition_types, status_fields, resync)
    values (${id}, ${kind.group}, ${kind.kind}, ${finalizer}, ${types}::text[], ${fields}::text[],
      ${resyncMs} * interval '1 millisecond')
    on conflict (name) do update set api_group = excluded.api_group, kind = excluded.kind, finalizer = excluded.finalizer,
      condition_types = excluded.condition_types, status_fields = excluded.status_fields, resync = excluded.resync
    where (c.api_group, c.kind, c.finalizer, c.condition_types, c.status_fields, c.resync) is distinct from (excluded.api_group,
      excluded.kind, excluded.finalizer, excluded.condition_types, excluded.status_fields, excluded.resync)`;
  await sql`delete from plumbline.controller_watch where controller = ${id}`;
  for (const watch of controller.watches) {
    await sql`insert into plumbline.controller_watch (controller, api_group, kind)
      values (${id}, ${watch.kind.group}, ${watch.kind.kind}) on conflict do nothing`;
  }
}
