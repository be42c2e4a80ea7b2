/** `npm run migrate`: brings the database of DATABASE_URL to this program's schema, and does nothing else. */

import { migrate } from '#adapters/postgres/migrate.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { explainDatabaseError } from '#infra/_shared/database/database-error.ts';
import { statementUrl } from '#infra/_shared/settings/database-variables.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

await runCommand(async function migrateDatabase() {
  const databaseUrl = statementUrl(readConfig(process.env, { isTerminal: process.stdout.isTTY }));
  if (databaseUrl === undefined)
    throw new StartError('DATABASE_URL is not set; npm start migrates the embedded database by itself');
  try {
    await migrate(databaseUrl);
  } catch (error) {
    throw explainDatabaseError(error, databaseUrl);
  }
  process.stdout.write('the schema is current\n');
});
