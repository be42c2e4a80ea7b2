/**
 * The files of the cluster. It is made in a folder beside its place and moved there when it is complete, so a start
 * that was interrupted leaves nothing that looks like a database.
 */

import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PRIVATE_FILE_MODE } from '#infra/_shared/data-dir/data-directory.ts';
import type { PostgresBinaries } from '#infra/_shared/postgres/binaries.ts';
import type { ClusterHome } from '#infra/_shared/postgres/home.ts';
import { run } from '#infra/_shared/postgres/run.ts';
import { StartError, hasCode } from '#infra/_shared/life/start-error.ts';

/** The superuser and the database, which have one name. */
export const DATABASE_NAME = 'plumbline';

const PASSWORD_FILE = 'plumbline.password';
const PASSWORD_BYTES = 24;
// C.UTF-8 inside PostgreSQL sorts and folds alike on every machine and libc; before 17 there is no such provider.
const BUILTIN_LOCALE_SINCE = 17;

export interface Cluster {
  /** PostgreSQL's data directory. */
  readonly directory: string;
  readonly password: string;
}

/**
 * The cluster of a home, made when there is none. Call it under the home's lock.
 * @throws {StartError} when it was made by another major version, or cannot be made.
 */
export async function openCluster(home: ClusterHome, binaries: PostgresBinaries): Promise<Cluster> {
  const directory = join(home.directory, 'data');
  const existing = await readVersion(directory);
  if (existing === undefined) await makeCluster(home, binaries, directory);
  else if (existing !== binaries.majorVersion) {
    throw new StartError(
      `${directory} was made by PostgreSQL ${existing}, and the one here is ${binaries.majorVersion}; ` +
        'dump it with the old one and load it into a new DATA_DIR, or set DATABASE_URL',
    );
  }
  return { directory, password: await readFile(join(directory, PASSWORD_FILE), 'utf8') };
}

async function readVersion(directory: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(join(directory, 'PG_VERSION'), 'utf8'), 10);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function makeCluster(home: ClusterHome, binaries: PostgresBinaries, directory: string): Promise<void> {
  const { account } = home;
  for (const name of await readdir(home.directory)) {
    // With retries: initdb may have outlived the process that was killed, and still be writing there.
    if (name.startsWith('new-')) await rm(join(home.directory, name), { recursive: true, maxRetries: 10 });
  }
  const workshop = await mkdtemp(join(home.directory, 'new-'));
  const made = join(workshop, 'data');
  const passwordFile = join(workshop, 'password');
  await writeFile(passwordFile, randomBytes(PASSWORD_BYTES).toString('base64url'), { mode: PRIVATE_FILE_MODE });
  if (account) {
    await chown(workshop, account.uid, account.gid);
    await chown(passwordFile, account.uid, account.gid);
  }
  await run(binaries.initdb, initdbArguments(made, passwordFile, binaries), { account });
  await run(binaries.postgres, ['--single', '-D', made, '-c', 'exit_on_error=on', 'postgres'], {
    account,
    input: `create database ${DATABASE_NAME}\n`,
  });
  await rename(passwordFile, join(made, PASSWORD_FILE));
  await rename(made, directory);
  await flush(home.directory);
  await rm(workshop, { recursive: true });
}

function initdbArguments(directory: string, passwordFile: string, binaries: PostgresBinaries): readonly string[] {
  const hasBuiltinLocale = binaries.majorVersion >= BUILTIN_LOCALE_SINCE;
  const locale = hasBuiltinLocale ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : [];
  const superuser = [`--username=${DATABASE_NAME}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  return [`--pgdata=${directory}`, ...superuser, '--encoding=UTF8', '--locale=C', ...locale, '--no-instructions'];
}

async function flush(directory: string): Promise<void> {
  // Windows opens no folders.
  if (process.platform === 'win32') return;
  const handle = await open(directory);
  await handle.sync();
  await handle.close();
}
