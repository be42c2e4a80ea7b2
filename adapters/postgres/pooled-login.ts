/**
 * The login of servers behind a transaction pooler. A pooler lends sessions statement by statement, so what other
 * connections ask for when they open are this login's defaults: that it acts as `plumbline_worker`, and how long a
 * statement may take. What serves callers takes the role for that by itself, see scoped.ts.
 */

import { guarded, type Sql } from '#adapters/postgres/client.ts';

/** Longer than a batch takes, and than a request waits. */
const STATEMENT_TIMEOUT_MS = 15_000;

/** Makes the login, or gives it this password. @param sql of a session that may make roles and owns the database. */
export async function makePooledLogin(sql: Sql, { name, password }: { name: string; password: string }): Promise<void> {
  const [row] = await sql<{ made: string; rest: string }[]>`
    select case when exists (select from pg_roles where rolname = ${name}) then format('alter role %I', ${name}::text)
        else format('create role %I', ${name}::text) end || format(' login noinherit password %L', ${password}::text) as made,
      format('grant plumbline_server, plumbline_worker to %1$I; grant connect on database %2$I to %1$I;
        alter role %1$I in database %2$I set role = plumbline_worker;
        alter role %1$I in database %2$I set statement_timeout = %3$L;
        alter role %1$I in database %2$I set jit = off;
        alter role %1$I in database %2$I set plan_cache_mode = force_generic_plan',
        ${name}::text, current_database(), ${STATEMENT_TIMEOUT_MS}::int4) as rest`;
  if (!row) throw new Error('a select returned no row');
  await sql.unsafe(row.made);
  await sql.unsafe(row.rest);
}

/** @throws {Error} when the login has more rights than servers have, or others. */
export async function assertServerRole(sql: Sql): Promise<void> {
  const [row] = await guarded(
    'login',
    () => sql<{ role: string; login: string }[]>`select current_user::text as role, session_user::text as login`,
  );
  if (row?.role === 'plumbline_worker') return;
  throw new Error(
    `the login ${row?.login} acts as ${row?.role}; servers act as plumbline_worker: ` +
      `alter role ${row?.login} set role = plumbline_worker`,
  );
}
