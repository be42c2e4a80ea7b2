/**
 * `npm run set-up`: what comes before the servers of a version, once, with the login that owns the schema: migrations, the
 * log of events, the kinds of KINDS, and TENANT_OBJECTS. It changes nothing that is so already.
 */

import { destination } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { connect } from '#adapters/postgres/client.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { explainDatabaseError } from '#infra/_shared/database/database-error.ts';
import { ownInstallation } from '#infra/_shared/database/installation.ts';
import { openKinds } from '#infra/_shared/kinds/open-kinds.ts';
import { requireServerConfig } from '#infra/node/arguments.ts';

const USAGE =
  'usage: DATABASE_URL=… npm run set-up; the login owns the database. It takes the variables of the servers';

await runCommand(async function setUp() {
  const given = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const config = requireServerConfig(given, new Set());
  const { statementUrl: url, logFormat } = config;
  await migrate(url).catch((error: unknown) => {
    throw explainDatabaseError(error, url);
  });
  const installation = ownInstallation(url);
  await installation.haveLog(config, createLogger({ format: logFormat, level: 'warn', stream: destination(2) }));
  const sql = connect(url, { applicationName: 'plumbline set-up', maxConnections: 1, pooler: 'any' });
  try {
    const kinds = await openKinds({ config, databaseUrl: url, sql, topicAdmin: undefined }, installation);
    await installation.haveObjectLimit(config.limits.tenantObjects);
    process.stdout.write(`the schema is current; ${kinds.all.length} kinds are registered\n`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}, USAGE);
