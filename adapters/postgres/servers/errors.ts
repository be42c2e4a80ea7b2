/** What servers throw, as the port's errors: by the server's configured name, never by its address. */

import postgres from 'postgres';
import { isTransient } from '#adapters/postgres/client.ts';
import { ServerBusy, ServerUnavailable } from '#core/ports/database-servers.ts';

const LOCK_NOT_AVAILABLE = '55P03';

/** The error of a statement that was about this server. Errors that are the port's already pass as they are. */
export function toServerError(error: unknown, server: string): unknown {
  if (error instanceof postgres.PostgresError) {
    const text = [error.message, error.detail].filter(Boolean).join(': ');
    const message = `database server "${server}": ${text}`;
    if (error.code === LOCK_NOT_AVAILABLE) return new ServerBusy(message, { cause: error });
    return isTransient(error) ? new ServerUnavailable(message, { cause: error }) : new Error(message, { cause: error });
  }
  if (!isTransient(error)) return error;
  // Messages of the network have the address.
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  return new ServerUnavailable(`database server "${server}" cannot be reached (${code}); it is tried again`, {
    cause: error,
  });
}

/** The SQLSTATE of what PostgreSQL refused. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined;
}
