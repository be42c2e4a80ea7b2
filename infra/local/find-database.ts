/** The database that scripts beside a running instance work on. */

import type { Config } from '#infra/local/config.ts';
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
