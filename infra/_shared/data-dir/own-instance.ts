/** What an instance has in its DATA_DIR: the right to be the only one there, its keys, its database, and where it is. */

import type { Logger } from 'pino';
import type { Config } from '#infra/_shared/settings/config.ts';
import { openDataDirectory } from '#infra/_shared/data-dir/data-directory.ts';
import { openDatabase } from '#infra/_shared/database/database.ts';
import {
  type DevelopmentIdentity,
  loadDevelopmentIdentity,
  removeDevelopmentIdentity,
} from '#infra/_shared/tokens/development-identity.ts';
import { greet } from '#infra/_shared/life/greeting.ts';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { removeRunFile, type RunInfo, writeRunFile } from '#infra/_shared/data-dir/run-file.ts';
import type { Started } from '#infra/_shared/life/started.ts';
import { writeTokenFiles } from '#infra/_shared/tokens/token-files.ts';

export interface OwnInstance {
  readonly databaseUrl: string;
  /** Undefined when tokens are those of an issuer. */
  readonly keys: DevelopmentIdentity | undefined;
  /** Once it is ready: leaves its tokens and run.json there, and tells where it is. */
  announce(urls: Pick<RunInfo, 'publicUrl' | 'controllerUrl' | 'opsUrl'>): Promise<void>;
}

/** Notes in `started` how each part stops. @throws {StartError} */
export async function openOwnInstance(config: Config, logger: Logger, started: Started): Promise<OwnInstance> {
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
  return {
    databaseUrl: database.url,
    keys,
    async announce(urls) {
      if (keys) await writeTokenFiles(dataDir, keys);
      const info = { pid: process.pid, ...urls, databaseUrl: database.url };
      await writeRunFile(dataDir, info);
      started.push({ name: 'run.json', stop: () => removeRunFile(dataDir) });
      greet(config, info, logger);
    },
  };
}
