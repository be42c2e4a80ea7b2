/** Whether a login may change the schema. Servers need not, and better cannot. */

import { withSession } from '#adapters/postgres/session.ts';

/** Of a migrated database; through a transaction pooler too. */
export async function mayOwnSchema(databaseUrl: string): Promise<boolean> {
  return withSession(databaseUrl, { applicationName: 'plumbline login check', pooler: 'any' }, async (sql) => {
    const [row] = await sql<
      { may: boolean }[]
    >`select pg_has_role(session_user, 'plumbline_migrator', 'member') as may`;
    return row?.may ?? false;
  });
}
