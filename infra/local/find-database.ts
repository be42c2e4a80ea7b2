/** The database that scripts beside a running instance work on. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Config } from '#infra/local/config.ts';
import { openDatabase } from '#infra/local/database.ts';
import { lockInstance } from '#infra/local/instance-lock.ts';
import { readRunFile } from '#infra/local/run-file.ts';
import { StartError } from '#infra/local/start-error.ts';

/** DATABASE_URL's, or the one of the instance that runs in DATA_DIR. @throws {StartError} when there is neither. */
export async function findDatabaseUrl(config: Config): Promise<string> {
  const url = config.databaseUrl ?? (await readRunFile(config.dataDir))?.databaseUrl;
  if (url === undefined) {
    throw new StartError(`no instance runs in ${config.dataDir}: run npm start there first, or set DATABASE_URL`);
  }
  return url;
}

/**
 * The same for what must also be done while nothing runs: the embedded server is started for as long as it takes.
 * @throws {StartError} when DATA_DIR has no database.
 */
export async function withDatabase<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  if (config.databaseUrl !== undefined) return work(config.databaseUrl);
  if (!existsSync(join(config.dataDir, 'postgres'))) {
    throw new StartError(`${config.dataDir} has no database; set DATA_DIR to the folder that has, or DATABASE_URL`);
  }
  const lock = await lockInstance(config.dataDir).catch(() => undefined);
  // Whoever has it runs the server.
  if (!lock) return work(await findDatabaseUrl(config));
  try {
    const database = await openDatabase(config, pino({ level: 'silent' }));
    try {
      return await work(database.url);
    } finally {
      await database.stop();
    }
  } finally {
    lock.release();
  }
}
