/**
 * The connection pool, and the one place where PostgreSQL's errors become the callers' `StatusError`.
 *
 * Nearly every call of the store is one statement, so it needs no transaction of the client's and works through a
 * transaction pooler. What needs a connection of its own takes a session, see `session.ts`.
 */

import postgres from 'postgres';
import { socketFactory } from '#adapters/postgres/socket.ts';
import { StatusError } from '#core/status-error.ts';

/** A pool whose bigints are bigints. */
export type Sql = postgres.Sql<{ bigint: bigint }>;
/** A piece of SQL to be put into another. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

export interface ConnectOptions {
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** @default 10 */
  readonly maxConnections?: number;
  /** The role to act as; `plumbline_server` for everything that serves. Absent: the login role. */
  readonly role?: 'plumbline_server' | 'plumbline_migrator';
  /**
   * For pools whose statements are short: the server ends one that takes longer, and a connection on which nothing is
   * answered for a little more than that is given up. Absent: statements may wait for ever.
   */
  readonly statementTimeoutMs?: number;
  /** After which an idle connection is closed. @default never */
  readonly idleTimeoutSeconds?: number;
  /** Called each time that a connection has ended, or could not be made. */
  readonly onClose?: () => void;
}

/** How much longer than a statement may take we wait for the server to say so. */
const ANSWER_MARGIN_MS = 1_000;
/**
 * Between attempts to connect. The driver's own pause rises to 20 s, for which requests would wait too; a refused
 * attempt costs 0.2 ms.
 */
const RECONNECT_PAUSE_SECONDS = 0.05;

/** Opens a pool; connections are made when needed. Whoever opens it ends it. */
export function connect(databaseUrl: string, options: ConnectOptions): Sql {
  const { statementTimeoutMs, idleTimeoutSeconds, onClose } = options;
  // The driver knows these; its types do not.
  const untyped = {
    // One statement at a time on a connection: a short one never waits behind a long one.
    max_pipeline: 0,
    socket: socketFactory(statementTimeoutMs === undefined ? undefined : statementTimeoutMs + ANSWER_MARGIN_MS),
  };
  const sql: Sql = postgres(databaseUrl, {
    ...untyped,
    max: options.maxConnections ?? 10,
    types: { bigint: postgres.BigInt },
    connect_timeout: 5,
    // Recycled connections bound the memory of backends; a resident listener must not lose its wake-ups to it.
    max_lifetime: null,
    backoff: () => RECONNECT_PAUSE_SECONDS,
    ...(idleTimeoutSeconds !== undefined && { idle_timeout: idleTimeoutSeconds }),
    ...(onClose && { onclose: () => onClose() }),
    onnotice: () => undefined,
    connection: {
      application_name: options.applicationName,
      // Every statement has one good plan, whatever its arguments; planning a list anew costs 0.5 ms each time.
      plan_cache_mode: 'force_generic_plan',
      ...(options.role && { role: options.role }),
      ...(statementTimeoutMs !== undefined && { statement_timeout: statementTimeoutMs }),
    },
    transform: { undefined: null },
  });
  origins.set(sql, { databaseUrl, options });
  return sql;
}

export interface Origin {
  readonly databaseUrl: string;
  readonly options: ConnectOptions;
}

const origins = new WeakMap<Sql, Origin>();

/** How a pool was opened, so that another connection can be made as its are. */
export function originOf(sql: Sql): Origin {
  const origin = origins.get(sql);
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

/** Whether the statement may succeed when it is repeated later. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  return CONNECTION_CODES.has(code) || (code.length === 5 && TRANSIENT_CLASSES.has(code.slice(0, 2)));
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The caller's error for anything that a statement threw. Unknown errors pass as they are: they are faults of ours.
 * @param subject what the statement was about, for the message: `Widget "blue"`.
 */
export function toCallerError(error: unknown, subject: string): unknown {
  if (isTransient(error)) {
    return new StatusError('ServiceUnavailable', 'the database is not available; try again', {
      details: { retryAfterSeconds: 1 },
      cause: error,
    });
  }
  if (!(error instanceof postgres.PostgresError)) return error;
  const field = error.column_name;
  const details = field === undefined ? undefined : causes(field, error.message);
  switch (error.code) {
    case 'PL404':
      return new StatusError('NotFound', error.message, { cause: error });
    case 'PL409':
      return new StatusError('Conflict', `${subject}: ${error.message}`, { cause: error, ...(details && { details }) });
    case 'PL422':
      return new StatusError('Invalid', `${subject} is invalid: ${error.message}`, {
        cause: error,
        ...(details && { details }),
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

function causes(field: string, message: string): { causes: { reason: string; message: string; field: string }[] } {
  return { causes: [{ reason: 'FieldValueForbidden', message, field }] };
}
