/**
 * Statements behind the second wall, see sql/0020_row_security.sql: whatever their conditions say, they reach the rows of
 * their scope alone. Each statement of a pool becomes a transaction that names its scope, which works through a
 * transaction pooler.
 */

import { textArray } from '#adapters/postgres/arrays.ts';
import type { Sql } from '#adapters/postgres/connection.ts';
import { framed } from '#adapters/postgres/pool.ts';
import type { Scope, TenantSet } from '#core/identity.ts';

/** Who is served by it sees what it names; whoever else the login may be. */
const SERVE = 'set local role plumbline_server';

/** Begins a transaction that serves nobody yet: it sees nothing. */
export const BEGIN_SERVING: string = `begin; ${SERVE}`;

/**
 * The pool, for statements that serve a scope. Of the connection of a transaction that began with `beginScoped`: itself;
 * without such a beginning its statements see nothing.
 */
export function scoped(sql: Sql, scope: Scope): Sql {
  return framed(sql, beginScoped(scope)) ?? sql;
}

/** The pool, for statements that read the events of these streams. */
export function scopedToStreams(sql: Sql, streams: readonly bigint[]): Sql {
  return framed(sql, `begin; ${SERVE}; set local plumbline.streams = ${literal(list(streams))}`) ?? sql;
}

/** Begins a transaction that serves a scope. @param mode of the transaction, as in `begin isolation level …` */
export function beginScoped({ tenants }: Scope, mode = ''): string {
  return `begin ${mode}; ${SERVE}; set local plumbline.tenants = ${literal(settingOf(tenants))}`;
}

function settingOf(tenants: TenantSet): string {
  if (tenants === '*') return tenants;
  return 'allBut' in tenants ? `!${list(tenants.allBut)}` : list(tenants);
}

function list(values: readonly (string | bigint)[]): string {
  return String(textArray.serialize(values.map(String)));
}

/** Independent of `standard_conforming_strings`. */
function literal(text: string): string {
  const doubled = text.replaceAll("'", "''");
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}
