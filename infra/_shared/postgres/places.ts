/**
 * Folders that every account of the machine can enter. Only root needs them: for programs and data that lie where the
 * account that PostgreSQL runs under cannot go.
 */

import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, sep } from 'node:path';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { type Account, canEnter } from '#infra/_shared/postgres/account.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const DURABLE_DIRECTORY = '/var/lib/plumbline';
const TEMPORARY_PREFIX = 'plumbline-data-';
const LINK_FILE = 'linked-from';
const OPEN_DIRECTORY_MODE = 0o755;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * A folder of ours that all may enter: `/var/lib/plumbline`, or one in the temp folder where that cannot be made.
 * @throws {StartError} when there is no such folder.
 */
export async function openSharedDirectory(account: Account | undefined): Promise<string> {
  const reasons: string[] = [];
  for (const path of [DURABLE_DIRECTORY, join(tmpdir(), 'plumbline')]) {
    try {
      await makeOpen(path);
      if (await canEnter(account, path)) return path;
      reasons.push(`${path}: the account that PostgreSQL runs under cannot enter it`);
    } catch (error) {
      reasons.push(messageOf(error));
    }
  }
  throw new StartError(
    `there is no folder that PostgreSQL's account can reach: ${reasons.join('; ')}; set DATABASE_URL`,
  );
}

/**
 * Makes a folder for the data of `dataDir`, gives it to the account and links to it from `link`, a path in `dataDir`. It
 * is as durable as `dataDir`: data of the temp folder stay in the temp folder, and are removed by a later call when no
 * link leads to them any more; others are never removed.
 */
export async function makeLinkedPlace(account: Account, dataDir: string, link: string): Promise<string> {
  const temporary = await realpath(tmpdir());
  const origin = await realpath(dataDir);
  const isTemporary = origin.startsWith(`${temporary}${sep}`) && (await canEnter(account, temporary));
  if (isTemporary) await removeAbandoned(temporary);
  const prefix = isTemporary ? join(temporary, TEMPORARY_PREFIX) : join(await openSharedDirectory(account), 'data-');
  const place = await mkdtemp(prefix);
  await chown(place, account.uid, account.gid);
  await symlink(place, link);
  // Last, since a place with this file and without its link counts as abandoned.
  if (isTemporary) await writeFile(join(place, LINK_FILE), join(origin, basename(link)));
  return place;
}

async function removeAbandoned(temporary: string): Promise<void> {
  for (const name of await readdir(temporary)) {
    const place = join(temporary, name);
    if (name.startsWith(TEMPORARY_PREFIX) && (await isAbandoned(place))) {
      await rm(place, { recursive: true, force: true, maxRetries: 10 });
    }
  }
}

async function isAbandoned(place: string): Promise<boolean> {
  try {
    const file = join(place, LINK_FILE);
    // Only what we made ourselves: nobody else can make a file of ours.
    if ((await lstat(file)).uid !== process.getuid?.()) return false;
    const target = await readlink(await readFile(file, 'utf8')).catch(() => undefined);
    if (target === place) return false;
    // A server may outlive its DATA_DIR.
    (await lockInstance(place)).release();
    return true;
  } catch {
    return false;
  }
}

/** What another account could write to must not be run or trusted: somebody may have made the folder before us. */
async function makeOpen(path: string): Promise<void> {
  const isNew = (await mkdir(path, { recursive: true })) !== undefined;
  if (isNew) await chmod(path, OPEN_DIRECTORY_MODE);
  const { uid, mode } = await lstat(path);
  if (uid !== process.getuid?.() || (mode & WRITABLE_BY_OTHERS) !== 0) {
    throw new StartError(`${path}: belongs to, or can be written by, another account`);
  }
}
