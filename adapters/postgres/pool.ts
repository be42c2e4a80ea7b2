/**
 * A pool of connections that are never used again once they have closed, with one statement at a time on each, so that a
 * short one never waits behind a long one; unless the pool is one request's, see `isPipelined`. While the server is away
 * every statement is told at once.
 *
 * The driver's own pool uses broken connections again (see `connection.ts`), pauses for up to 20 s before it does, and
 * keeps whoever waits for one without a limit. Of the driver this needs one thing that it does not document: a query
 * hands itself to its `handler` when it is first awaited.
 */

import { connectionError } from '#adapters/postgres/connection-error.ts';
import type { Sql } from '#adapters/postgres/connection.ts';
import { type FramedQuery, runFramed } from '#adapters/postgres/framed-query.ts';
import { isStatement, sendAtOnce, type Statement } from '#adapters/postgres/one-flight.ts';

export interface PoolOptions {
  readonly maxConnections: number;
  /** How long a statement waits for a connection. Absent: for ever. */
  readonly patienceMs: number | undefined;
  /** See `connect`. */
  readonly isPipelined?: boolean | undefined;
  /** In place of the driver's own. */
  readonly listen?: Sql['listen'] | undefined;
}

/** A statement of the driver. */
interface Query extends FramedQuery, Statement {
  handler: (query: Query) => void;
}

interface Connection {
  readonly sql: Sql;
  readonly run: (query: Query) => void;
  isClosed: boolean;
}

interface Waiting {
  readonly query: Query;
  readonly expiry: NodeJS.Timeout | undefined;
}

/** Pools to the way to have each statement in a transaction of its own. */
const framings = new WeakMap<Sql, (beginning: string) => Sql>();

/**
 * The same pool, of which each statement is a transaction that begins with this text, in one round trip.
 * Undefined for what is no pool.
 */
export function framed(pool: Sql, beginning: string): Sql | undefined {
  return framings.get(pool)?.(beginning);
}

/** What needs a connection of its own takes a session. */
const REFUSED: readonly PropertyKey[] = ['begin', 'reserve', 'subscribe', 'file'];

/** @param open makes a connection; its argument is to be called once it has closed. */
export function createPool(
  open: (onClose: () => void) => Sql,
  { maxConnections, patienceMs, isPipelined = false, listen }: PoolOptions,
): Sql {
  const connections = new Set<Connection>();
  // The last one used first: its plans are warm, and the others may rest.
  const idle: Connection[] = [];
  const waiting: Waiting[] = [];
  let isEnded = false;
  /** Builds statements, and listens; it never runs one. */
  const builder = open(() => undefined);

  return front(undefined);

  function front(beginning: string | undefined): Sql {
    const pool = new Proxy(builder, {
      apply(target, _self, args: Parameters<Sql>): unknown {
        return routed(Reflect.apply(target, undefined, args));
      },
      get(target, name): unknown {
        if (name === 'end') return end;
        if (name === 'listen' && listen) return listen;
        if (name === 'unsafe') return (...args: Parameters<Sql['unsafe']>) => routed(target.unsafe(...args));
        if (REFUSED.includes(name)) throw new TypeError(`a pool has no ${String(name)}: open a session`);
        return Reflect.get(target, name);
      },
    });
    framings.set(pool, front);
    return pool;

    function routed(built: unknown): unknown {
      if (!isStatement(built)) return built;
      const query = built as Query;
      query.handler = dispatch;
      sendAtOnce(query);
      if (beginning !== undefined) query.beginning = beginning;
      return query;
    }
  }

  function dispatch(query: Query): void {
    if (isEnded) return query.reject(connectionError('CONNECTION_ENDED', 'the pool has ended'));
    const [first] = isPipelined ? connections : [];
    const connection = first ?? idle.pop() ?? (connections.size < maxConnections ? openOne() : undefined);
    if (connection) run(connection, query);
    else wait(query);
  }

  function openOne(): Connection {
    const sql = open(() => drop(connection));
    // The handler of the connection itself, taken from a query that is never run.
    const connection: Connection = { sql, run: (sql`` as unknown as Query).handler, isClosed: false };
    connections.add(connection);
    return connection;
  }

  function run(connection: Connection, query: Query): void {
    const settled = (): void => {
      if (!connection.isClosed) goOn(connection);
    };
    if (query.beginning !== undefined) return runFramed(connection, query, query.beginning, settled);
    void Promise.prototype.then.call(query, settled, settled);
    connection.run(query);
  }

  function goOn(connection: Connection): void {
    const next = nextWaiting();
    if (next) run(connection, next);
    else if (!isPipelined) idle.push(connection);
  }

  function drop(connection: Connection): void {
    if (connection.isClosed) return;
    connection.isClosed = true;
    connections.delete(connection);
    if (idle.includes(connection)) idle.splice(idle.indexOf(connection), 1);
    void connection.sql.end({ timeout: 0 });
    const next = nextWaiting();
    if (next) dispatch(next);
  }

  function wait(query: Query): void {
    const expiry = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
    const entry = { query, expiry };
    waiting.push(entry);
    function giveUp(): void {
      waiting.splice(waiting.indexOf(entry), 1);
      query.reject(connectionError('CONNECT_TIMEOUT', `no connection came free within ${patienceMs} ms`));
    }
  }

  function nextWaiting(): Query | undefined {
    const entry = waiting.shift();
    clearTimeout(entry?.expiry);
    return entry?.query;
  }

  async function end(options: Parameters<Sql['end']>[0] = {}): Promise<void> {
    isEnded = true;
    for (let query = nextWaiting(); query; query = nextWaiting()) dispatch(query);
    await Promise.all([...[...connections].map(({ sql }) => sql.end(options)), builder.end({ timeout: 0 })]);
  }
}
