/** Writes the kinds of this program to the registry that triggers and raw SQL obey. */

import { connect } from '#adapters/postgres/client.ts';

/** What the database must know of a kind. */
export interface RegisteredKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly redact: readonly string[];
  readonly finalizers: readonly string[];
}

/**
 * Adds or updates these kinds; kinds of other programs on the same database stay. Secret paths are only added: a program
 * that lacks one must not show what another has hidden. To take one away is an operator's deed, in table `kind`.
 * @throws Error when another kind has the plural already, or the kind's scope would change.
 */
export async function registerKinds(databaseUrl: string, kinds: readonly RegisteredKind[]): Promise<void> {
  const sql = connect(databaseUrl, {
    applicationName: 'plumbline register kinds',
    maxConnections: 1,
    role: 'plumbline_migrator',
  });
  try {
    for (const kind of kinds) {
      const [row] = await sql<{ scope: string }[]>`
        insert into plumbline.kind as k (api_group, kind, version, plural, scope, redact, finalizers)
        values (${kind.group}, ${kind.kind}, ${kind.version}, ${kind.plural}, ${kind.scope}, ${[...kind.redact]}::text[],
          ${[...kind.finalizers]}::text[])
        on conflict (api_group, kind) do update set version = excluded.version, plural = excluded.plural,
          redact = array(select distinct path from unnest(k.redact || excluded.redact) path order by path), finalizers = excluded.finalizers
        returning scope`;
      if (row?.scope !== kind.scope) {
        throw new Error(
          `kind ${kind.group}/${kind.kind} is ${row?.scope ?? 'unknown'} in this database; its scope cannot change`,
        );
      }
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}
