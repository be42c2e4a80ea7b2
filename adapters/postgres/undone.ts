/**
 * Transactions that are always rolled back. They take a session: on a pool each statement has a connection of its own,
 * and behind a transaction pooler only what stands between BEGIN and ROLLBACK stays on one.
 */

import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { beginScoped } from '#adapters/postgres/scoped.ts';
import { type Session, sessionsBeside } from '#adapters/postgres/session.ts';
import { NoTurn, type TurnsOptions } from '#adapters/postgres/turns.ts';
import type { Scope } from '#core/identity.ts';
import { StatusError } from '#core/status-error.ts';

/** Each costs a connection for a few statements. */
const TURNS: TurnsOptions = { maxOpen: 4, maxPerOwner: 2, patienceMs: 2_000 };

/** Runs work in a transaction that serves the scope, and rolls it back, whatever came of it. @throws what the work throws; StatusError */
export type Undone = <T>(owner: string, scope: Scope, work: (sql: Sql) => Promise<T>) => Promise<T>;

/** They connect as the pool does. */
export function undoneBeside(pool: Sql): Undone {
  const sessions = sessionsBeside(pool, TURNS);
  return async (owner, scope, work) => {
    let session: Session | undefined;
    try {
      session = await sessions.open(owner);
      // Rows that it has locked must not stay so when nobody goes on.
      await session.sql.unsafe(`${beginScoped(scope)}; set local idle_in_transaction_session_timeout = '10s'`);
      const result = await work(session.sql);
      // What a transaction is refused for at its end refuses this one too.
      await session.sql.unsafe('set constraints all immediate; rollback');
      return result;
    } catch (error) {
      if (error instanceof NoTurn) throw tooMany(error);
      throw toCallerError(error, 'dry run');
    } finally {
      // Whatever is still open ends with its connection.
      await session?.close().catch(() => undefined);
    }
  };
}

function tooMany(cause: NoTurn): StatusError {
  const message = 'as many dry runs as may be at once are under way in this tenant; try again';
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 1 }, cause });
}
