/**
 * `npm start`: every function in one process, for one machine. Everything that can fail says why in one line and ends
 * with exit code 1; SIGTERM and SIGINT stop in the reverse order and end with 0.
 */

import { compose } from '#infra/_shared/life/compose.ts';
import { type Config, readConfig } from '#infra/_shared/settings/config.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { ownInstallation } from '#infra/_shared/database/installation.ts';
import { openOwnInstance } from '#infra/_shared/data-dir/own-instance.ts';
import { PROCESS_ROLES } from '#infra/_shared/settings/process-role.ts';
import { runUntilStopped, type StartDeps } from '#infra/_shared/life/run-until-stopped.ts';

await runCommand(async function start() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  await runUntilStopped(config, (deps) => startAll(config, deps));
});
// Handles that are still open must not keep a stopped instance alive.
process.exit();

async function startAll(config: Config, { logger, started, stopSignal }: StartDeps): Promise<void> {
  const { databaseUrl, keys, announce } = await openOwnInstance(config, logger, started);
  const installation = ownInstallation(databaseUrl);
  const roles = new Set(PROCESS_ROLES);
  const { opsUrl, listeners } = await compose(
    { config, databaseUrl, installation, roles, logger, keys, stopSignal },
    started,
  );
  if (!listeners) throw new Error('every function was started, and none listens');
  await announce({ ...listeners, opsUrl });
}
