/**
 * `postmaster.pid`, by which PostgreSQL tells of its state: line 1 is the pid, line 8 the status, `ready` once it
 * accepts connections. pg_ctl waits by the same file.
 *
 * @see https://www.postgresql.org/docs/current/storage-file-layout.html
 * @see https://github.com/postgres/postgres/blob/master/src/include/utils/pidfile.h
 */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '#infra/_shared/life/start-error.ts';

const FILE_NAME = 'postmaster.pid';
const STATUS_LINE = 7;

export interface PostmasterState {
  readonly pid: number;
  readonly isReady: boolean;
}

/** Undefined when there is no file, or it is being written. */
export async function readPostmaster(clusterDirectory: string): Promise<PostmasterState | undefined> {
  const lines = await readLines(clusterDirectory);
  const pid = Number.parseInt(lines[0] ?? '', 10);
  return pid > 0 ? { pid, isReady: lines[STATUS_LINE]?.trim() === 'ready' } : undefined;
}

/**
 * Takes over the file that a dead server left. PostgreSQL refuses to start while any process has the pid in it, also one
 * that has it by chance; the pid of the new server's parent, which we shall be, counts as left over. The file is not
 * removed, since its other lines let PostgreSQL find backends of the dead server that still use its memory.
 */
export async function takeOverPostmaster(clusterDirectory: string): Promise<void> {
  const [, ...rest] = await readLines(clusterDirectory);
  await writeFile(join(clusterDirectory, FILE_NAME), [String(process.pid), ...rest].join('\n'));
}

async function readLines(clusterDirectory: string): Promise<readonly string[]> {
  try {
    return (await readFile(join(clusterDirectory, FILE_NAME), 'utf8')).split('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
