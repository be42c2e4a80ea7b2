/**
 * Whether an address is a pooler's, which lends its sessions: LISTEN, the locks of a session and what a connection asks for
 * when it begins are lost behind such a one, and nothing says so.
 */

import { connect } from '#adapters/postgres/client.ts';
import { openSession } from '#adapters/postgres/session.ts';

/** A pooler that is busy with others may lend two of them by chance. */
const ROUNDS = 5;
/** What poolers say to parameters that they do not know. */
const PROTOCOL_VIOLATION = '08P01';

/**
 * What shows that it is one; undefined: nothing. What it returns is certain, and a pooler that is busy or in session mode
 * may pass. @throws the driver's error when it cannot be reached.
 */
export async function signOfPooler(databaseUrl: string): Promise<string | undefined> {
  if (await sharesSessions(databaseUrl)) return 'two connections to it were lent one session';
  return refusesParameters(databaseUrl);
}

/** Of two connections that are open at the same time: PostgreSQL never does so. */
async function sharesSessions(databaseUrl: string): Promise<boolean> {
  const options = { applicationName: 'plumbline address check', pooler: 'any' } as const;
  const [one, other] = [openSession(databaseUrl, options), openSession(databaseUrl, options)];
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = await one.sql`select pg_backend_pid() as pid`;
      const second = await other.sql`select pg_backend_pid() as pid`;
      if (first[0]?.['pid'] === second[0]?.['pid']) return true;
    }
    return false;
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
}

async function refusesParameters(databaseUrl: string): Promise<string | undefined> {
  const sql = connect(databaseUrl, { applicationName: 'plumbline start', maxConnections: 1, role: 'plumbline_worker' });
  try {
    const [row] = await sql<{ role: string }[]>`select current_user::text as role`;
    return row?.role === 'plumbline_worker' ? undefined : 'it ignores the role that a connection asks for';
  } catch (error) {
    const isRefused = error instanceof Error && 'code' in error && error.code === PROTOCOL_VIOLATION;
    if (isRefused) return `it refuses what a connection asks for: ${error.message}`;
    throw error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
