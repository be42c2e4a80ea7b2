/**
 * One connection of the driver, which connects when it is first used. It must not be used again once it has closed:
 * the driver would connect anew, and put the rows of the next statement behind those that the broken one left. So a
 * pool replaces it, and a session ends with it.
 */

import postgres from 'postgres';
import { bigintArray, textArray } from '#adapters/postgres/arrays.ts';
import { socketFactory } from '#adapters/postgres/socket.ts';

/** Bigints are bigints. */
export type Sql = postgres.Sql<{ bigint: bigint }>;

export interface ConnectionOptions {
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /**
   * The role to act as: `plumbline_server` for what serves callers, `plumbline_worker` for what serves all tenants alike.
   * Absent: the login role.
   */
  readonly role?: 'plumbline_server' | 'plumbline_worker' | 'plumbline_migrator';
  /**
   * For short statements: the server ends one that takes longer, and a connection on which nothing is answered for a
   * little more than that is given up. Absent: statements may wait for ever.
   */
  readonly statementTimeoutMs?: number;
  /**
   * Through a transaction pooler: one that prepares statements in the sessions it lends (Hyperdrive, PgBouncer from 1.21
   * on), or any, which has each statement planned anew. Sessions change between transactions, so none is asked for a
   * state: the login has its role and its parameters as defaults (see pooled-login.ts), and a pool of the role
   * `plumbline_server` takes it for each statement; `settings` are for connections of one's own. @default none
   */
  readonly pooler?: 'preparing' | 'any';
  /** Parameters of the server, which outrank those that the database and the login have. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** How much longer than a statement may take we wait for the server to say so. */
const ANSWER_MARGIN_MS = 1_000;
const CONNECT_TIMEOUT_SECONDS = 3;
/** Between attempts to listen again. The driver's own pause rises to 20 s. */
const RECONNECT_PAUSE_SECONDS = 0.05;

/**
 * @param onClose is called when it has closed or broken, or could not connect; before anyone is told by a rejected
 * statement, and perhaps more than once.
 */
export function openConnection(databaseUrl: string, options: ConnectionOptions, onClose: () => void): Sql {
  const { applicationName, role, statementTimeoutMs, pooler, settings } = options;
  // The driver knows this option; its types do not.
  const untyped = {
    socket: socketFactory({
      answerTimeoutMs: statementTimeoutMs === undefined ? undefined : statementTimeoutMs + ANSWER_MARGIN_MS,
      // Earlier than the driver tells: between its error and its end a connection takes statements, and loses them.
      onBroken: onClose,
    }),
  };
  return postgres(databaseUrl, {
    ...untyped,
    max: 1,
    types: { bigint: postgres.BigInt, textArray, bigintArray },
    fetch_types: false,
    prepare: pooler !== 'any',
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    // Recycled connections bound the memory of backends; a resident listener must not lose its wake-ups to it.
    max_lifetime: null,
    backoff: () => RECONNECT_PAUSE_SECONDS,
    onclose: () => onClose(),
    onnotice: () => undefined,
    // PgBouncer refuses parameters that it does not know.
    connection: pooler
      ? { application_name: applicationName }
      : {
          application_name: applicationName,
          // Every statement has one good plan, whatever its arguments; planning a list anew costs 0.5 ms each time.
          plan_cache_mode: 'force_generic_plan',
          // They are short: compiling one takes longer than running it.
          jit: 'off',
          ...(role && { role }),
          ...(statementTimeoutMs !== undefined && { statement_timeout: statementTimeoutMs }),
          ...settings,
        },
    transform: { undefined: null },
  });
}
