/**
 * `npm start`: every function in one process, for one machine. Everything that can fail says why in one line and ends
 * with exit code 1; SIGTERM and SIGINT stop in the reverse order and end with 0.
 */

import { compose } from '#infra/local/compose.ts';
import { type Config, readConfig } from '#infra/local/config.ts';
import { runCommand } from '#infra/local/command.ts';
import { openDataDirectory } from '#infra/local/data-directory.ts';
import { openDatabase } from '#infra/local/database.ts';
import { loadDevelopmentIdentity, removeDevelopmentIdentity } from '#infra/local/development-identity.ts';
import { greet } from '#infra/local/greeting.ts';
import { ownInstallation } from '#infra/local/installation.ts';
import { lockInstance } from '#infra/local/instance-lock.ts';
import { PROCESS_ROLES } from '#infra/local/process-role.ts';
import { removeRunFile, writeRunFile } from '#infra/local/run-file.ts';
import { runUntilStopped, type StartDeps } from '#infra/local/run-until-stopped.ts';
import { writeTokenFiles } from '#infra/local/token-files.ts';

await runCommand(async function start() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  await runUntilStopped(config, (deps) => startAll(config, deps));
});
// Handles that are still open must not keep a stopped instance alive.
process.exit();

async function startAll(config: Config, { logger, started, stopSignal }: StartDeps): Promise<void> {
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
  const installation = ownInstallation(database.url);
  const roles = new Set(PROCESS_ROLES);
  const { opsUrl, listeners } = await compose(
    { config, databaseUrl: database.url, installation, roles, logger, keys, stopSignal },
    started,
  );
  if (!listeners) throw new Error('every function was started, and none listens');
  if (keys) await writeTokenFiles(dataDir, keys);
  const info = { pid: process.pid, ...listeners, opsUrl, databaseUrl: database.url };
  await writeRunFile(dataDir, info);
  started.push({ name: 'run.json', stop: () => removeRunFile(dataDir) });
  greet(config, info, logger);
}
