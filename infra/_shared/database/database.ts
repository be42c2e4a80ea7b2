/** The database of a local instance: an embedded server, or the one that DATABASE_URL names; migrated either way. */

import type { Logger } from 'pino';
import { migrate } from '#adapters/postgres/migrate.ts';
import { withSession } from '#adapters/postgres/session.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { explainDatabaseError } from '#infra/_shared/database/database-error.ts';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

export interface LocalDatabase {
  readonly url: string;
  /** Stops the embedded server; a server that was given stays. */
  stop(): Promise<void>;
}

/** @throws {StartError} when there is no server, or its schema cannot be brought to this program's. */
export async function openDatabase(config: Config, log: Logger): Promise<LocalDatabase> {
  const database = await findServer(config, log);
  try {
    await migrate(database.url);
    return database;
  } catch (error) {
    await database.stop();
    throw explainDatabaseError(error, database.url);
  }
}

async function findServer(config: Config, log: Logger): Promise<LocalDatabase> {
  if (config.databaseUrl !== undefined) return given(config.databaseUrl);
  if (config.poolerUrl === undefined) return startEmbedded(config, log);
  throw new StartError(
    'DATABASE_DIRECT_URL is "none", but npm start migrates the database with the login that owns it, and the login of a ' +
      'pooler only serves: set DATABASE_DIRECT_URL, or start servers by npm run serve',
  );
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
