/**
 * Where the cluster of a DATA_DIR lies, and whose it is. Nearly always it is the folder `DATA_DIR/postgres`, private to
 * the account that PostgreSQL runs under. When we are root and that account cannot reach DATA_DIR (a folder above has
 * mode 700), it is a folder in `/var/lib/plumbline` (or in the temp folder, when DATA_DIR is below that), and
 * `DATA_DIR/postgres` is a symbolic link to it. So the link decides: a DATA_DIR that was removed and made anew has an
 * empty database, and one that was moved keeps its own.
 */

import { chown, lstat, mkdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, canEnter, chooseAccount, isRoot } from '#infra/_shared/postgres/account.ts';
import { makeLinkedPlace } from '#infra/_shared/postgres/places.ts';
import { PRIVATE_DIRECTORY_MODE } from '#infra/_shared/data-dir/data-directory.ts';
import { StartError, hasCode } from '#infra/_shared/life/start-error.ts';

export interface ClusterHome {
  /** Without symbolic links. */
  readonly directory: string;
  /** Absent: our own. */
  readonly account: Account | undefined;
}

/**
 * Finds or makes the home. DATA_DIR must exist.
 * @throws {StartError} when the home belongs to an account that we cannot be, or cannot be reached.
 */
export async function openHome(dataDir: string): Promise<ClusterHome> {
  const path = join(dataDir, 'postgres');
  return (await isThere(path)) ? existingHome(path) : newHome(path, dataDir);
}

async function existingHome(path: string): Promise<ClusterHome> {
  const directory = await realpath(path).catch((error: unknown) => {
    throw new StartError(
      `${path} links to a folder that is gone, and the database with it; remove the link to start with an empty one`,
      { cause: error },
    );
  });
  const { uid, gid } = await stat(directory);
  if (!isRoot()) {
    if (process.getuid && uid !== process.getuid()) {
      throw new StartError(`${directory} belongs to the account with uid ${uid}: start as that one, or as root`);
    }
    return { directory, account: undefined };
  }
  // Left by a start that was interrupted before it gave the folder away.
  if (uid === 0) return own(directory, await chooseAccount());
  const account = { uid, gid };
  if (!(await canEnter(account, directory))) {
    throw new StartError(
      `PostgreSQL does not run as root, and the owner of ${directory} (uid ${uid}) cannot enter a folder above it; ` +
        'move DATA_DIR to where it can, or open those folders (chmod o+x)',
    );
  }
  return { directory, account };
}

async function newHome(path: string, dataDir: string): Promise<ClusterHome> {
  const account = await chooseAccount();
  if (account && !(await canEnter(account, dataDir))) {
    return { directory: await makeLinkedPlace(account, dataDir, path), account };
  }
  await mkdir(path, { mode: PRIVATE_DIRECTORY_MODE });
  return own(await realpath(path), account);
}

async function own(directory: string, account: Account | undefined): Promise<ClusterHome> {
  if (account) await chown(directory, account.uid, account.gid);
  return { directory, account };
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
