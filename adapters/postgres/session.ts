/**
 * Connections with a state of their own: locks, transactions. A session that loses its connection is lost as a whole, and
 * says so. The driver's own way, `reserve`, must not be used for it: a statement on a reserved connection that has
 * closed ends the process, and a reservation that could not connect is never settled.
 *
 * @see https://github.com/porsager/postgres/issues/1208
 */

import { originOf, type Sql } from '#adapters/postgres/client.ts';
import { createTurns, type TurnsOptions } from '#adapters/postgres/turns.ts';
import { connectionError } from '#adapters/postgres/connection-error.ts';
import { isStatement, sendAtOnce } from '#adapters/postgres/one-flight.ts';
import { type ConnectionOptions, openConnection } from '#adapters/postgres/connection.ts';

/** One connection, made when it is first used. */
export interface Session {
  /** Runs statements on this connection and no other. @throws CONNECTION_CLOSED once it is gone. */
  readonly sql: Sql;
  readonly isLost: boolean;
  /** Ends it, whatever it does. */
  close(): Promise<void>;
}

export interface SessionOptions extends ConnectionOptions {
  /** Called once, when the connection has ended by itself or could not be made. */
  readonly onLost?: () => void;
}

/** Opens a session; whoever opens it closes it. */
export function openSession(databaseUrl: string, { onLost, ...options }: SessionOptions): Session {
  let isLost = false;
  const connection = openConnection(databaseUrl, options, lose);
  const sql = new Proxy(connection, {
    apply(target, _self, args: Parameters<Sql>): unknown {
      if (isLost) throw sessionLost();
      const built: unknown = Reflect.apply(target, undefined, args);
      if (isStatement(built)) sendAtOnce(built);
      return built;
    },
    get(target, name): unknown {
      if (isLost && name === 'unsafe') throw sessionLost();
      return Reflect.get(target, name);
    },
  });
  return {
    sql,
    get isLost() {
      return isLost;
    },
    async close() {
      isLost = true;
      await connection.end({ timeout: 0 });
    },
  };

  function lose(): void {
    if (isLost) return;
    isLost = true;
    void connection.end({ timeout: 0 });
    onLost?.();
  }
}

/** Sessions beside a pool, of which only so many are open at once. */
export interface Sessions {
  /**
   * A new session for an owner; waits while too many are open.
   * @throws {NoTurn} when none was closed in time.
   */
  open(owner: string): Promise<Session>;
}

/** They connect as the pool does. */
export function sessionsBeside(pool: Sql, limits: TurnsOptions): Sessions {
  const { databaseUrl, options } = originOf(pool);
  const turns = createTurns(limits);
  return { open };

  async function open(owner: string): Promise<Session> {
    const endTurn = await turns.take(owner);
    const session = openSession(databaseUrl, options);
    return {
      sql: session.sql,
      get isLost() {
        return session.isLost;
      },
      async close() {
        endTurn();
        await session.close();
      },
    };
  }
}

/** Lends a session for one piece of work. @throws what the work throws. */
export async function withSession<T>(
  databaseUrl: string,
  options: SessionOptions,
  use: (sql: Sql) => Promise<T>,
): Promise<T> {
  const session = openSession(databaseUrl, options);
  try {
    return await use(session.sql);
  } finally {
    await session.close();
  }
}

function sessionLost(): Error {
  return connectionError('CONNECTION_CLOSED', 'the connection of this session is gone, and all that was bound to it');
}
