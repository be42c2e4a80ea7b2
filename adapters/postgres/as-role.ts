/** Work of operators and of starts, as one of our roles: through a transaction pooler too, which lends no session to set one in. */

import { connect, type ConnectOptions, type Sql } from '#adapters/postgres/client.ts';
import { framed } from '#adapters/postgres/pool.ts';

export type AsRoleOptions = Required<Pick<ConnectOptions, 'applicationName' | 'role'>>;

/** Lends a connection on which each statement is a transaction as this role. @throws what the work throws. */
export async function asRole<T>(
  databaseUrl: string,
  { applicationName, role }: AsRoleOptions,
  use: (sql: Sql) => Promise<T>,
): Promise<T> {
  const pool = connect(databaseUrl, { applicationName, maxConnections: 1, pooler: 'any' });
  try {
    return await use(framed(pool, `begin; set local role ${role}`) ?? pool);
  } finally {
    await pool.end({ timeout: 1 });
  }
}
