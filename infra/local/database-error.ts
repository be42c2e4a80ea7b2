/** What is wrong with a database that was given. */

import { SchemaMismatch } from '#adapters/postgres/migrate.ts';
import { maskDatabaseUrl } from '#infra/local/database-variables.ts';
import { messageOf, StartError } from '#infra/local/start-error.ts';

/** Faults of this program keep their stack; what the operator can change becomes one line. */
export function explainDatabaseError(error: unknown, url: string): unknown {
  if (error instanceof SchemaMismatch) return new StartError(error.message, { cause: error });
  const isServerError = error instanceof Error && 'severity' in error;
  const isNetworkError = error instanceof Error && 'code' in error && !isServerError;
  if (!isServerError && !isNetworkError) return error;
  return new StartError(`the database ${maskDatabaseUrl(url)} cannot be used: ${messageOf(error)}`, { cause: error });
}
