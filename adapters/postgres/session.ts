/**
 * Connections with a state of their own: locks, transactions. A session that loses its connection is lost as a whole, and
 * says so. The driver's own way, `reserve`, must not be used for it: a statement on a reserved connection that has
 * closed ends the process, and a reservation that could not connect is never settled.
 *
 * @see https://github.com/porsager/postgres/issues/1208
 */

import { connect, type ConnectOptions, originOf, type Sql } from '#adapters/postgres/client.ts';

/** SQLSTATE of the server's own refusal. */
const TOO_MANY_CONNECTIONS = '53300';

/** One connection, made when it is first used. */
export interface Session {
  /** Runs statements on this connection and no other. @throws {SessionLost} once it is gone. */
  readonly sql: Sql;
  readonly isLost: boolean;
  /** Ends it, whatever it does. */
  close(): Promise<void>;
}

/** The connection is gone, and all that was bound to it. */
export class SessionLost extends Error {
  override readonly name = 'SessionLost';
  // As the driver's own: callers may try again.
  readonly code = 'CONNECTION_CLOSED';

  constructor() {
    super('the connection of this session is gone');
  }
}

export interface SessionOptions extends Omit<ConnectOptions, 'maxConnections' | 'onClose'> {
  /** Called once, when the connection has ended by itself or could not be made. */
  readonly onLost?: () => void;
}

/** Opens a session; whoever opens it closes it. */
export function openSession(databaseUrl: string, { onLost, ...options }: SessionOptions): Session {
  let isLost = false;
  const pool = connect(databaseUrl, { ...options, maxConnections: 1, onClose: lose });
  const sql = new Proxy(pool, {
    apply(target, _self, args: Parameters<Sql>): unknown {
      if (isLost) throw new SessionLost();
      return Reflect.apply(target, undefined, args);
    },
    get(target, name): unknown {
      if (isLost && name === 'unsafe') throw new SessionLost();
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
      await pool.end({ timeout: 0 });
    },
  };

  function lose(): void {
    if (isLost) return;
    isLost = true;
    // Or the driver would go on with another connection.
    void pool.end({ timeout: 0 }).catch(() => undefined);
    onLost?.();
  }
}

/** Sessions beside a pool, of which only so many are open at once. */
export interface Sessions {
  /**
   * A new session; waits while too many are open.
   * @throws an error that calls for another attempt, when none was closed in time.
   */
  open(): Promise<Session>;
}

export interface SessionsOptions {
  readonly maxOpen: number;
  /** How long `open` waits. */
  readonly patienceMs: number;
}

/** They connect as the pool does. */
export function sessionsBeside(pool: Sql, { maxOpen, patienceMs }: SessionsOptions): Sessions {
  const { databaseUrl, options } = originOf(pool);
  const waiting: (() => void)[] = [];
  let free = maxOpen;
  return { open };

  async function open(): Promise<Session> {
    if (free > 0) free -= 1;
    else await turn();
    const session = openSession(databaseUrl, options);
    let isClosed = false;
    return {
      sql: session.sql,
      get isLost() {
        return session.isLost;
      },
      async close() {
        if (!isClosed) next();
        isClosed = true;
        await session.close();
      },
    };
  }

  async function turn(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const expiry = setTimeout(() => {
        waiting.splice(waiting.indexOf(serve), 1);
        reject(Object.assign(new Error(`${maxOpen} sessions are open`), { code: TOO_MANY_CONNECTIONS }));
      }, patienceMs);
      waiting.push(serve);
      function serve(): void {
        clearTimeout(expiry);
        resolve();
      }
    });
  }

  function next(): void {
    const serve = waiting.shift();
    if (serve) serve();
    else free += 1;
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
