/**
 * How a process reaches the database: directly, through a transaction pooler with the database itself beside it, or through
 * the pooler alone. What needs a session (LISTEN, the locks of a sleep) never goes through a pooler: without another address
 * nobody is woken, and who waits for news looks for them again and again.
 */

import { signOfPooler } from '#adapters/postgres/address.ts';
import { connect, type ConnectOptions, type Sql } from '#adapters/postgres/client.ts';
import { polledListen } from '#adapters/postgres/polled-listen.ts';
import { assertServerRole } from '#adapters/postgres/pooled-login.ts';
import { postgresWriterSleep, type WriterSleepOptions } from '#adapters/postgres/writer-sleep.ts';
import type { WriterSleep } from '#core/ports/writer-sleep.ts';
import { explainDatabaseError } from '#infra/_shared/database/database-error.ts';
import type { DatabaseAddresses } from '#infra/_shared/settings/database-variables.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';
import { pollingSleep } from '#loop/polling-sleep.ts';

export interface DatabaseAccess {
  /** Opens a pool; whoever opens it ends it. */
  open(options: ConnectOptions): Sql;
  /** @param sql a pool of this access. */
  sleepOf(options: Omit<WriterSleepOptions, 'databaseUrl'>): WriterSleep;
  /**
   * @throws {StartError} when the database's address is a pooler's, when the login that the pooler has acts as something else
   * than servers do, and when one of them cannot be reached.
   */
  check(): Promise<void>;
  /** What listens for the pools. */
  close(): Promise<void>;
}

/** Of publishers and reconcilers: a look is one statement, of 0.1 ms when there is nothing. */
const LOOK_EVERY_MS = 250;
/**
 * Events, acks and lanes of groups, and tenants that come or go: a tenant's end must find who watches all. Each is one
 * statement for all watches of a process.
 */
const LISTEN_EVERY_MS = { plumbline_event_log: 250, plumbline_watch_group: 500, plumbline_stream: 500 };

export function databaseAccess({ databaseUrl, poolerUrl }: DatabaseAddresses): DatabaseAccess {
  const listener =
    poolerUrl === undefined || databaseUrl === undefined
      ? undefined
      : connect(databaseUrl, { applicationName: 'plumbline listen', maxConnections: 1, role: 'plumbline_worker' });
  const listen = listener?.listen ?? polledListen(LISTEN_EVERY_MS);
  return {
    open,
    sleepOf: (options) =>
      databaseUrl === undefined
        ? pollingSleep(LOOK_EVERY_MS, options.signal)
        : postgresWriterSleep({ ...options, databaseUrl }),
    async check() {
      if (databaseUrl !== undefined) await checkSessions(databaseUrl, poolerUrl);
      if (poolerUrl !== undefined) await checkLogin();
    },
    close: async () => listener?.end({ timeout: 1 }),
  };

  function open(options: ConnectOptions): Sql {
    if (poolerUrl !== undefined) return connect(poolerUrl, { ...options, pooler: 'any', listen });
    if (databaseUrl === undefined) throw new TypeError('the database has no address');
    return connect(databaseUrl, options);
  }

  async function checkLogin(): Promise<void> {
    const sql = open({ applicationName: 'plumbline start', maxConnections: 1 });
    try {
      await assertServerRole(sql);
    } catch (error) {
      throw new StartError(`DATABASE_URL cannot be used: ${messageOf(error)}`, { cause: error });
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
}

async function checkSessions(databaseUrl: string, poolerUrl: string | undefined): Promise<void> {
  const sign = await signOfPooler(databaseUrl).catch((error: unknown) => {
    throw explainDatabaseError(error, databaseUrl);
  });
  if (sign === undefined) return;
  const variable = poolerUrl === undefined ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL';
  throw new StartError(
    `${variable} is the address of a pooler: ${sign}. Set ` +
      'DATABASE_DIRECT_URL to the address of the database itself, beside DATABASE_URL of the pooler; or to none, where ' +
      'there is no other: then what LISTEN would tell at once is found within half a second',
  );
}
