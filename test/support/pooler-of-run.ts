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
  /** For our roles: as few sessions as make them meet. */
  readonly pooler: string;
  /** What acts as `plumbline_worker`, and as `plumbline_server` where it says so. */
  readonly login: Login;
  /** For the superuser that tests and operators are: sessions enough for those who wait for each other. */
  readonly wide: string;
  readonly superuser: string;
}

const WIDE_SESSIONS = 20;
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
  const pooler = await runPgBouncer(adminUrl, [login]);
  const wide = await runPgBouncer(adminUrl, [{ name: username, password }], { sessions: WIDE_SESSIONS });
  const addresses: PoolerOfRun = {
    server: host,
    pooler: `127.0.0.1:${pooler.port}`,
    login,
    wide: `127.0.0.1:${wide.port}`,
    superuser: username,
  };
  process.env[VARIABLE] = JSON.stringify(addresses);
  return {
    async stop() {
      await Promise.all([pooler.stop(), wide.stop()]);
    },
  };
}
