/**
 * Folders that every account of the machine can enter. Only root needs them: for programs and data that lie where the
 * account that PostgreSQL runs under cannot go.
 */

import { chmod, lstat, mkdir, mkdtemp, readFile, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { lockInstance } from '#infra/local/instance-lock.ts';
import { type Account, canEnter } from '#infra/local/postgres/account.ts';
import { StartError, hasCode, messageOf } from '#infra/local/start-error.ts';

const DURABLE_DIRECTORY = '/var/lib/plumbline';
const TEMPORARY_PREFIX = 'plumbline-data-';
const ORIGIN_FILE = 'data-directory';
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
 * A new folder for the data of `dataDir`, as durable as that is. Data of the temp folder stay in the temp folder, and
 * are removed by a later call once their DATA_DIR is gone; others are never removed.
 */
export async function makeDataPlace(account: Account, dataDir: string): Promise<string> {
  const temporary = await realpath(tmpdir());
  const origin = await realpath(dataDir);
  if (!origin.startsWith(`${temporary}${sep}`) || !(await canEnter(account, temporary))) {
    return mkdtemp(join(await openSharedDirectory(account), 'data-'));
  }
  await removeAbandoned(temporary);
  const place = await mkdtemp(join(temporary, TEMPORARY_PREFIX));
  await writeFile(join(place, ORIGIN_FILE), origin);
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

/** Only what we made ourselves can be: nobody else can make a file of ours. */
async function isAbandoned(place: string): Promise<boolean> {
  try {
    const file = join(place, ORIGIN_FILE);
    if ((await lstat(file)).uid !== process.getuid?.()) return false;
    const origin = await readFile(file, 'utf8');
    const isGone = await stat(origin).then(
      () => false,
      (error: unknown) => hasCode(error, 'ENOENT'),
    );
    // A server may outlive its DATA_DIR.
    if (isGone) (await lockInstance(place)).release();
    return isGone;
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
