/**
 * `npm start`: every function in one process, for one machine. Everything that can fail says why in one line and ends
 * with exit code 1; SIGTERM and SIGINT stop in the reverse order and end with 0.
 */

import type { Logger } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { composeLocal } from '#infra/local/compose.ts';
import { type Config, readConfig } from '#infra/local/config.ts';
import { runCommand } from '#infra/local/command.ts';
import { openDataDirectory } from '#infra/local/data-directory.ts';
import { openDatabase } from '#infra/local/database.ts';
import { loadDevelopmentIdentity, removeDevelopmentIdentity } from '#infra/local/development-identity.ts';
import { greet } from '#infra/local/greeting.ts';
import { lockInstance } from '#infra/local/instance-lock.ts';
import { removeRunFile, writeRunFile } from '#infra/local/run-file.ts';
import { type Started, stopAll } from '#infra/local/started.ts';
import { waitForStopSignal } from '#infra/local/stop-signals.ts';
import { writeTokenFiles } from '#infra/local/token-files.ts';

await runCommand(async function start() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const log = createLogger({ format: config.logFormat, level: config.logLevel });
  tellFaults(log);
  const stopSignal = waitForStopSignal();
  const started: Started = [];
  try {
    await startAll(config, log, started);
    log.info({ signal: await stopSignal }, 'stopping');
  } finally {
    await stopAll(started, log);
  }
  log.info('stopped');
});
// Handles that are still open must not keep a stopped instance alive.
process.exit();

/** Kinds of a team run in this process too. A promise that they forget must not end it; anything worse is told first. */
function tellFaults(log: Logger): void {
  process.on('unhandledRejection', (reason) => {
    log.error({ err: reason }, 'a promise was rejected that nobody waits for: a reconcile function forgot an await?');
  });
  process.on('uncaughtExceptionMonitor', (error) => {
    log.fatal({ err: error }, 'an error was thrown where nobody can catch it; the process ends');
  });
}

async function startAll(config: Config, logger: Logger, started: Started): Promise<void> {
  const { dataDir } = config;
  await openDataDirectory(dataDir);
  const lock = await lockInstance(dataDir);
  started.push({ name: 'lock', stop: () => lock.release() });
  // A killed instance left its own.
  await removeRunFile(dataDir);
  const keys = config.issuer ? undefined : await loadDevelopmentIdentity(dataDir);
  if (!keys) await removeDevelopmentIdentity(dataDir);
  const database = await openDatabase(config, logger);
  started.push({ name: 'database', stop: () => database.stop() });
  const servers = await composeLocal({ config, databaseUrl: database.url, logger, keys }, started);
  if (keys) await writeTokenFiles(dataDir, keys);
  const { publicUrl, controllerUrl, opsUrl } = servers;
  const info = { pid: process.pid, publicUrl, controllerUrl, opsUrl, databaseUrl: database.url };
  await writeRunFile(dataDir, info);
  started.push({ name: 'run.json', stop: () => removeRunFile(dataDir) });
  greet(config, info, logger);
}
