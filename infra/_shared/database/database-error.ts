/** What is wrong with a database that was given, or that goes away while it is used. */

import { isUnavailable } from '#adapters/postgres/client.ts';
import { SchemaMismatch } from '#adapters/postgres/migrate.ts';
import { StatusError } from '#core/status-error.ts';
import { maskDatabaseUrl } from '#infra/_shared/settings/database-variables.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

/** Faults of this program keep their stack; what the operator can change becomes one line. */
export function explainDatabaseError(error: unknown, url: string): unknown {
  if (error instanceof SchemaMismatch) return new StartError(error.message, { cause: error });
  const isServerError = error instanceof Error && 'severity' in error;
  const isNetworkError = error instanceof Error && 'code' in error && !isServerError;
  if (!isServerError && !isNetworkError) return error;
  return new StartError(`the database ${maskDatabaseUrl(url)} cannot be used: ${messageOf(error)}`, { cause: error });
}

/** For a database that takes no connections, or none with this login; undefined for any other error. */
export function unavailabilityIn(error: unknown): string | undefined {
  if (error instanceof StatusError && error.reason === 'ServiceUnavailable') {
    // Its message keeps the database's own words from callers.
    return [error.message, ...(error.cause === undefined ? [] : [messageOf(error.cause)])].join(': ');
  }
  // Errors of the system say by themselves what could not be reached, which need not be the database.
  const isOfDatabase = error instanceof Error && 'code' in error && !String(error.code).startsWith('E');
  return isOfDatabase && isUnavailable(error) ? `the database is not available: ${messageOf(error)}` : undefined;
}
