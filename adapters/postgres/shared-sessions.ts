/** Whether an address lends sessions: LISTEN and locks of a session are lost behind such a one, and nothing says so. */

import { openSession } from '#adapters/postgres/session.ts';

/** A pooler that is busy with others may lend two of them by chance. */
const ROUNDS = 5;

/**
 * Whether two connections that are open at the same time have been lent one session, which PostgreSQL itself never does.
 * True is certain; a pooler in session mode, or one that is busy, may say false.
 * @throws the driver's error when it cannot be reached.
 */
export async function sharesSessions(databaseUrl: string): Promise<boolean> {
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
