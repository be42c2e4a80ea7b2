/** The database that scripts beside a running instance work on. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Config } from '#infra/_shared/settings/config.ts';
import { databaseAccess, type DatabaseAccess } from '#infra/_shared/database/database-access.ts';
import { statementUrl } from '#infra/_shared/settings/database-variables.ts';
import { openDatabase } from '#infra/_shared/database/database.ts';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { readRunFile } from '#infra/_shared/data-dir/run-file.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

export interface FoundDatabase {
  /** For statements that take no session. */
  readonly url: string;
  /** For pools; whoever opens it closes it. */
  access(): DatabaseAccess;
}

/** DATABASE_URL's, or the one of the instance that runs in DATA_DIR. @throws {StartError} when there is neither. */
export async function findDatabase(config: Config): Promise<FoundDatabase> {
  const given = statementUrl(config);
  const url = given ?? (await readRunFile(config.dataDir))?.databaseUrl;
  if (url === undefined) {
    throw new StartError(`no instance runs in ${config.dataDir}: run npm start there first, or set DATABASE_URL`);
  }
  return {
    url,
    access: () => databaseAccess(given === undefined ? { databaseUrl: url, poolerUrl: undefined } : config),
  };
}

/** For what takes no session. @throws {StartError} when there is neither. */
export async function findDatabaseUrl(config: Config): Promise<string> {
  return (await findDatabase(config)).url;
}

/**
 * The same for what must also be done while nothing runs: the embedded server is started for as long as it takes.
 * @throws {StartError} when DATA_DIR has no database.
 */
export async function withDatabase<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const given = statementUrl(config);
  if (given !== undefined) return work(given);
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
