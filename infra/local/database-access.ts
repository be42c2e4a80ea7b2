/**
 * How the pools of a process reach the database: directly, or through a transaction pooler. What needs a session of its
 * own (locks, migrations, LISTEN) never goes through one.
 */

import { connect, type ConnectOptions, type Sql } from '#adapters/postgres/client.ts';
import { assertServerRole } from '#adapters/postgres/pooled-login.ts';
import type { Config } from '#infra/local/config.ts';
import { StartError, messageOf } from '#infra/local/start-error.ts';

export interface DatabaseAccess {
  /** Opens a pool; whoever opens it ends it. */
  open(options: ConnectOptions): Sql;
  /** @throws {StartError} when the login that the pooler has acts as something else than servers do. */
  check(): Promise<void>;
  /** What listens for the pools. */
  close(): Promise<void>;
}

/** @param directUrl where sessions go. */
export function databaseAccess({ poolerUrl }: Pick<Config, 'poolerUrl'>, directUrl: string): DatabaseAccess {
  if (poolerUrl === undefined) {
    return {
      open: (options) => connect(directUrl, options),
      check: async () => undefined,
      close: async () => undefined,
    };
  }
  const listener = connect(directUrl, {
    applicationName: 'plumbline listen',
    maxConnections: 1,
    role: 'plumbline_worker',
  });
  const open = (options: ConnectOptions): Sql =>
    connect(poolerUrl, { ...options, pooler: 'any', listen: listener.listen });
  return {
    open,
    async check() {
      const sql = open({ applicationName: 'plumbline start', maxConnections: 1 });
      try {
        await assertServerRole(sql);
      } catch (error) {
        throw new StartError(`DATABASE_URL cannot be used: ${messageOf(error)}`, { cause: error });
      } finally {
        await sql.end({ timeout: 1 });
      }
    },
    close: () => listener.end({ timeout: 1 }),
  };
}
