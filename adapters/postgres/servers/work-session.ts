/**
 * The connection of one piece of work to one database of a server, under locks that its process loses when it freezes:
 * the server ends sessions that fall silent, and only then another piece of work on the same object gets the locks.
 * Whatever wakes up later finds its connection gone. A session that is lost stays lost.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { openSession } from '#adapters/postgres/session.ts';
import { toServerError } from '#adapters/postgres/servers/errors.ts';
import { quoteText } from '#adapters/postgres/servers/quote.ts';
import { ServerBusy, type ServerWork } from '#core/ports/database-servers.ts';

const LOCK_TIMEOUT_MS = 10_000;
const GOODBYE_SECONDS = 1;

// The owner of a database sets defaults for all sessions in it, and makes functions in its schemas: neither may change
// what is done here, perhaps as a superuser, nor end it before it has begun. What is asked for in the startup packet
// outranks them.
const OWN_SETTINGS: Readonly<Record<string, string>> = {
  role: 'none',
  search_path: 'pg_catalog, pg_temp',
  default_transaction_read_only: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  lock_timeout: String(LOCK_TIMEOUT_MS),
  tcp_user_timeout: '0',
};

/** From this version on there is a parameter that ends the session with a transaction that takes too long. */
const TRANSACTION_TIMEOUT_SINCE = 170_000;

/** All others of the database: what the server starts with. Those of the login are its administrator's. */
const NEUTRALISE = `select set_config(name, coalesce(boot_val, ''), false) from pg_settings
  where source = 'database' and context = 'user'`;

export interface WorkSession {
  /** Runs statements; connects and takes the locks before the first. @throws the port's errors. */
  run<T>(statements: (sql: Sql) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface WorkSessionOptions {
  /** The server's configured name. */
  readonly server: string;
  readonly url: string;
  readonly work: ServerWork;
  readonly limits: SessionLimits;
  /** The server's, such as 180004, where it is known: parameters that an older one lacks would be refused. */
  readonly version?: number;
}

export interface SessionLimits {
  /** After which the server ends a session on which nothing was said. */
  readonly silenceMs: number;
  readonly statementTimeoutMs: number;
}

/** Opens one; whoever opens it closes it. */
export function openWorkSession({ server, url, work, limits, version = 0 }: WorkSessionOptions): WorkSession {
  const { uid, fencingToken, signal, turn } = work;
  const { silenceMs, statementTimeoutMs } = limits;
  const session = openSession(url, {
    applicationName: `plumbline ${uid} ${fencingToken}`,
    statementTimeoutMs,
    settings: {
      ...OWN_SETTINGS,
      idle_session_timeout: String(silenceMs),
      idle_in_transaction_session_timeout: String(silenceMs),
      ...(version >= TRANSACTION_TIMEOUT_SINCE && { transaction_timeout: '0' }),
    },
  });
  let ready: Promise<void> | undefined;
  const abort = (): void => void session.close();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });

  return {
    async run(statements) {
      try {
        ready ??= takeLocks();
        await ready;
        return await statements(session.sql);
      } catch (error) {
        throw signal.aborted ? signal.reason : toServerError(error, server);
      }
    },
    async close() {
      signal.removeEventListener('abort', abort);
      // In peace: once the server has hung up, its locks are free and nobody of ours is connected any more.
      if (ready && !session.isLost) await session.sql.end({ timeout: GOODBYE_SECONDS });
      await session.close();
    },
  };

  async function takeLocks(): Promise<void> {
    const statements = [NEUTRALISE, `select pg_try_advisory_lock(${keyOf(uid)}) as locked`];
    const results: readonly unknown[] = await session.sql.unsafe(statements.join('; '));
    const [row] = results.at(-1) as readonly { readonly locked: boolean }[];
    if (!row?.locked) {
      throw new ServerBusy(
        `database server "${server}" still has a session of an earlier pass of this object, ` +
          `which it ends within ${silenceMs / 1000} s; it is tried again`,
      );
    }
    if (turn !== undefined) await session.sql.unsafe(`select pg_advisory_lock(${keyOf(turn)})`);
  }
}

/** Advisory locks are numbers, and each database has its own. */
function keyOf(text: string): string {
  return `hashtextextended(${quoteText(`plumbline ${text}`)}, 0)`;
}
