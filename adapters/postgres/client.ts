/**
 * The connection pool, and the one place where PostgreSQL's errors become the callers' `StatusError`.
 *
 * Nearly every call of the store is one statement, so it needs no transaction of the client's and works through a
 * transaction pooler. What needs a connection of its own takes a session, see `session.ts`.
 */

import postgres from 'postgres';
import { type ConnectionOptions, openConnection, type Sql } from '#adapters/postgres/connection.ts';
import { createPool, framed } from '#adapters/postgres/pool.ts';
import { BEGIN_SERVING } from '#adapters/postgres/scoped.ts';
import { StatusError } from '#core/status-error.ts';

export type { Sql } from '#adapters/postgres/connection.ts';

/** A piece of SQL to be put into another. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

export interface ConnectOptions extends ConnectionOptions {
  /** @default 10 */
  readonly maxConnections?: number;
  /**
   * All statements go over one connection, one behind the other, and none waits for the answer of another to be sent: for
   * the pool of one request, where to connect takes longer than all its statements. @default false
   */
  readonly isPipelined?: boolean;
  /** Takes the place of LISTEN, which does not work behind a transaction pooler. @default the connection's own */
  readonly listen?: Sql['listen'] | undefined;
}

/** Of statements that have a timeout: how long one waits for a connection. All are busy for that long only when something is wrong. */
const PATIENCE_MS = 3_000;

/** Opens a pool; connections are made when needed. Whoever opens it ends it. */
export function connect(
  databaseUrl: string,
  { maxConnections = 10, isPipelined, listen, ...options }: ConnectOptions,
): Sql {
  const open = (onClose: () => void): Sql => openConnection(databaseUrl, options, onClose);
  const pool = createPool(open, {
    maxConnections,
    isPipelined,
    listen,
    patienceMs: options.statementTimeoutMs === undefined ? undefined : PATIENCE_MS,
  });
  origins.set(pool, { databaseUrl, options });
  return options.pooler !== undefined && options.role === 'plumbline_server' ? serving(pool) : pool;
}

/**
 * The same pool for what serves callers, where its login acts as who sees all, as the login of a pooler does: a statement
 * without a scope sees nothing.
 */
export function serving(pool: Sql): Sql {
  const served = framed(pool, BEGIN_SERVING);
  if (!served) throw new TypeError('this is no pool');
  origins.set(served, originOf(pool));
  return served;
}

/** How a pool was opened, so that another connection can be made as its are. */
export interface Origin {
  readonly databaseUrl: string;
  readonly options: ConnectionOptions;
}

const origins = new WeakMap<Sql, Origin>();

export function originOf(pool: Sql): Origin {
  const origin = origins.get(pool);
  if (!origin) throw new TypeError('this pool was not opened by connect()');
  return origin;
}

const CONNECTION_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
]);

// SQLSTATE classes after which the same statement may succeed: connection, transaction rollback (deadlock,
// serialization), resources, lock not available, operator intervention, system error.
const TRANSIENT_CLASSES = new Set(['08', '40', '53', '55', '57', '58']);

// Invalid authorization (a password that was changed), and a database that is not there: what an operator repairs.
const REFUSED_CLASSES = new Set(['28', '3D']);

/** Whether the statement may succeed when it is repeated later. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  return CONNECTION_CODES.has(code) || (code.length === 5 && TRANSIENT_CLASSES.has(code.slice(0, 2)));
}

/** Whether it is the database's state that failed the statement, which passes or which an operator repairs. */
export function isUnavailable(error: unknown): boolean {
  return isTransient(error) || isRefused(error);
}

function isRefused(error: unknown): boolean {
  return error instanceof postgres.PostgresError && REFUSED_CLASSES.has(error.code.slice(0, 2));
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The caller's error for anything that a statement threw. Unknown errors pass as they are: they are faults of ours.
 * @param subject what the statement was about, for the message: `Widget "blue"`.
 */
export function toCallerError(error: unknown, subject: string): unknown {
  if (isUnavailable(error)) {
    return new StatusError('ServiceUnavailable', 'the database is not available; try again', {
      details: { retryAfterSeconds: 1 },
      cause: error,
    });
  }
  if (!(error instanceof postgres.PostgresError)) return error;
  const { column_name: field, constraint_name: reason } = error;
  const details = field === undefined ? undefined : causes(field, error.message, reason);
  switch (error.code) {
    case 'PL403':
      return new StatusError('Forbidden', `${subject}: ${[error.message, error.hint].filter(Boolean).join('. ')}`, {
        cause: error,
        ...(details && { details }),
      });
    case 'PL404':
      return new StatusError('NotFound', error.message, { cause: error });
    case 'PL409':
      return new StatusError('Conflict', `${subject}: ${error.message}`, { cause: error, ...(details && { details }) });
    case 'PL422':
      return new StatusError('Invalid', `${subject} is invalid: ${error.message}`, {
        cause: error,
        ...(details && { details }),
      });
    case 'PL429':
      // There is room once somebody makes some: whoever asks again every second would only be refused.
      return new StatusError('TooManyRequests', `${subject}: ${error.message}`, {
        details: { retryAfterSeconds: 60 },
        cause: error,
      });
    case '23505':
      return new StatusError('AlreadyExists', `${subject} already exists`, { cause: error });
    case '23514':
      return new StatusError('Invalid', `${subject} is invalid: ${error.constraint_name ?? error.message}`, {
        cause: error,
      });
    // Documents that JSON allows and jsonb does not: NUL, lone surrogates, numbers out of range, depth.
    case '22P05':
    case '22P02':
    case '22003':
    case '22021':
    case '54001':
    case '54000':
      return new StatusError('Invalid', `${subject} is invalid: ${error.message}`, { cause: error });
    default:
      return error;
  }
}

/** Runs a statement; what it throws becomes the caller's error, see `toCallerError`. */
export async function guarded<T>(subject: string, statement: () => Promise<T>): Promise<T> {
  try {
    return await statement();
  } catch (error) {
    throw toCallerError(error, subject);
  }
}

/** @param reason of rules of our own, which name it as their constraint. */
function causes(
  field: string,
  message: string,
  reason: string = 'FieldValueForbidden',
): { causes: { reason: string; message: string; field: string }[] } {
  return { causes: [{ reason, message, field }] };
}
