/**
 * DATA_DIR on disk. Its files appear whole or not at all, and what is secret can be read by the owner alone from the
 * first byte on.
 */

import { randomBytes } from 'node:crypto';
import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError, hasCode, messageOf } from '#infra/_shared/life/start-error.ts';

/** Only the owner reads or writes. */
export const PRIVATE_FILE_MODE = 0o600;
/** Only the owner enters. */
export const PRIVATE_DIRECTORY_MODE = 0o700;
// Others may pass through to the database cluster, which belongs to another account when we run as root, but not look.
const DATA_DIRECTORY_MODE = 0o711;

/** Makes DATA_DIR when it is absent. @throws {StartError} when it cannot be made. */
export async function openDataDirectory(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: DATA_DIRECTORY_MODE });
  } catch (error) {
    throw new StartError(`DATA_DIR ${dataDir} cannot be made: ${messageOf(error)}`, { cause: error });
  }
}

/** Makes a folder of DATA_DIR that only the owner enters, and answers its path. */
export async function openPrivateDirectory(dataDir: string, name: string): Promise<string> {
  const path = join(dataDir, name);
  await mkdir(path, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  return path;
}

/** Writes or replaces a private file. A reader sees the old text or the new one. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = await writeTemporary(path, text);
  await rename(temporary, path);
}

/** Writes a private file unless there is one. Of several processes that try, one does. Answers whether this one did. */
export async function createPrivateFile(path: string, text: string): Promise<boolean> {
  const temporary = await writeTemporary(path, text);
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await rm(temporary);
  }
}

async function writeTemporary(path: string, text: string): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  await writeFile(temporary, text, { mode: PRIVATE_FILE_MODE, flag: 'wx', flush: true });
  return temporary;
}
