/** The database of a local instance: an embedded server, or the one that DATABASE_URL names; migrated either way. */

import type { Logger } from 'pino';
import { SchemaMismatch, migrate } from '#adapters/postgres/migrate.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { type Config, maskDatabaseUrl } from '#infra/local/config.ts';
import { startEmbeddedPostgres } from '#infra/local/embedded-postgres.ts';
import { StartError, messageOf } from '#infra/local/start-error.ts';

export interface LocalDatabase {
  readonly url: string;
  /** Stops the embedded server; a server that was given stays. */
  stop(): Promise<void>;
}

/** @throws {StartError} when there is no server, or its schema cannot be brought to this program's. */
export async function openDatabase(config: Config, log: Logger): Promise<LocalDatabase> {
  const database = config.databaseUrl === undefined ? await startEmbedded(config, log) : given(config.databaseUrl);
  try {
    await migrate(database.url);
    return database;
  } catch (error) {
    await database.stop();
    throw explain(error, database.url);
  }
}

async function startEmbedded(config: Config, log: Logger): Promise<LocalDatabase> {
  const server = await startEmbeddedPostgres({ dataDir: config.dataDir, log: log.child({ component: 'postgres' }) });
  // Managed databases lie on it too, and their roles have no business in Plumbline's own.
  await withSession(server.url, { applicationName: 'plumbline start' }, async (sql) => {
    // A session in a database that belongs to nobody could hold locks there that our own work needs.
    await sql`revoke all on database plumbline, postgres, template1 from public`;
  });
  return server;
}

function given(url: string): LocalDatabase {
  return { url, stop: async () => undefined };
}

/** Faults of a migration keep their stack; what the operator can change becomes one line. */
function explain(error: unknown, url: string): unknown {
  if (error instanceof SchemaMismatch) return new StartError(error.message, { cause: error });
  const isServerError = error instanceof Error && 'severity' in error;
  const isNetworkError = error instanceof Error && 'code' in error && !isServerError;
  if (!isServerError && !isNetworkError) return error;
  return new StartError(`the database ${maskDatabaseUrl(url)} cannot be used: ${messageOf(error)}`, { cause: error });
}
