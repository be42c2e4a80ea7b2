/**
 * `npm run serve -- --role api,watch,publish,reconcile`: a server, of some functions or all. It brings no database and no
 * keys, changes no schema, and writes no file: what it needs is in its environment, and `npm run set-up` came first.
 */

import { mayOwnSchema } from '#adapters/postgres/schema-owner.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { compose } from '#infra/_shared/life/compose.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { givenInstallation } from '#infra/_shared/database/installation.ts';
import { assertOwnSchema } from '#infra/_shared/database/own-schema.ts';
import { runUntilStopped } from '#infra/_shared/life/run-until-stopped.ts';
import { parseServeArguments, requireServerConfig, SERVE_USAGE } from '#infra/node/arguments.ts';

await runCommand(async function serve() {
  const roles = parseServeArguments(process.argv.slice(2));
  const config = requireServerConfig(readConfig(process.env, { isTerminal: process.stdout.isTTY }), roles);
  const { databaseUrl, statementUrl: url } = config;
  await runUntilStopped(config, async ({ logger, started, stopSignal }) => {
    await assertOwnSchema(url);
    if (await mayOwnSchema(url)) {
      const variable =
        config.poolerUrl === undefined || databaseUrl === undefined ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL';
      logger.warn(`the login of ${variable} may change the schema; servers need one in role plumbline_worker alone`);
    }
    const installation = givenInstallation(url);
    const { opsUrl, listeners } = await compose(
      { config, databaseUrl, installation, roles, logger, keys: undefined, stopSignal },
      started,
    );
    logger.info({ roles: [...roles], ...listeners, opsUrl }, 'ready');
  });
}, SERVE_USAGE);
process.exit();
