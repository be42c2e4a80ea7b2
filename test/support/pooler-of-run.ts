/**
 * `PLUMBLINE_TEST_POOLER=1`: the connections of what is tested go through one PgBouncer in transaction mode, in front of the
 * server of the run. Tests and programs that they start stay as they are: `pooled-connection.ts` takes the place of the
 * module that opens connections. What needs a session keeps one, as behind DATABASE_DIRECT_URL.
 */

import postgres from 'postgres';
import { ensureTemplate } from '#test/support/postgres-server.ts';
import { type Login, noPgBouncer, runPgBouncer } from '#test/support/pgbouncer.ts';

export const isPooledRun: boolean = process.env['PLUMBLINE_TEST_POOLER'] === '1';

/** Where connections to the server of the run go instead. */
export interface PoolerOfRun {
  /** Host and port. */
  readonly server: string;
  readonly pooler: string;
  readonly superuser: string;
  /** What acts as `plumbline_worker`, and as `plumbline_server` where it says so. */
  readonly login: Login;
}

const VARIABLE = 'PLUMBLINE_TEST_POOLER_ADDRESSES';

/** Read by every process of the run; undefined where it is not pooled. */
export function poolerOfRun(): PoolerOfRun | undefined {
  const text = process.env[VARIABLE];
  return text === undefined ? undefined : (JSON.parse(text) as PoolerOfRun);
}

/** Tells workers, and what they start, by the environment. @param adminUrl of the superuser */
export async function startPoolerOfRun(adminUrl: string): Promise<{ stop(): Promise<void> }> {
  if (noPgBouncer !== undefined) throw new Error(noPgBouncer);
  const { host, username, password } = new URL(adminUrl);
  const login = { name: 'plumbline_test_pooled', password: crypto.randomUUID() };
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  try {
    // The roles come with the first schema.
    await ensureTemplate(sql, adminUrl);
    await sql.unsafe(`
      create role ${login.name} login noinherit password '${login.password}';
      grant plumbline_server, plumbline_worker to ${login.name};
      alter role ${login.name} set role = plumbline_worker;
      alter role ${login.name} set statement_timeout = '15s';
      alter role ${login.name} set jit = off;
      alter role ${login.name} set plan_cache_mode = force_generic_plan`);
  } finally {
    await sql.end();
  }
  const { port, stop } = await runPgBouncer(adminUrl, [login, { name: username, password }]);
  const addresses: PoolerOfRun = { server: host, pooler: `127.0.0.1:${port}`, superuser: username, login };
  process.env[VARIABLE] = JSON.stringify(addresses);
  return { stop };
}
