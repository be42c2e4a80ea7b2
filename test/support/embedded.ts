/** What tests of the embedded server share. */

import { execFile } from 'node:child_process';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Logger, destination, pino } from 'pino';
import postgres from 'postgres';
import { vi } from 'vitest';

export const quiet: Logger = pino({ level: 'silent' }, destination(2));

/** A new folder that the account of PostgreSQL can enter, so that a DATA_DIR in it holds its cluster. */
export async function enterableFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-embedded-'));
  await chmod(folder, 0o711);
  return folder;
}

/** Runs one query on a connection of its own. */
export async function query(url: string, text: string): Promise<readonly postgres.Row[]> {
  // The query for array types has no owner: when it fails, nobody could catch it.
  const sql = postgres(url, { max: 1, connect_timeout: 5, fetch_types: false, onnotice: () => undefined });
  try {
    return await sql.unsafe(text);
  } finally {
    // postgres.js waits without end when the server went away under a query.
    await sql.end({ timeout: 1 });
  }
}

/** Waits until no process has this pid. */
export async function gone(pid: number): Promise<void> {
  await vi.waitFor(async () => {
    if (await isRunning(pid)) throw new Error(`process ${pid} still runs`);
  }, 20_000);
}

export async function isRunning(pid: number): Promise<boolean> {
  // A zombie is as good as gone, and kill(pid, 0) cannot tell.
  const state = await processes(`-p ${pid} -o stat=`);
  return state.trim() !== '' && !state.startsWith('Z');
}

/** The guard that would stop a server when its parent is killed. */
export async function guardOf(serverPid: number): Promise<number> {
  const lines = (await processes('-e -ww -o pid=,command=')).split('\n');
  const line = lines.find((text) => text.endsWith(`plumbline-postgres-guard ${serverPid}`));
  if (!line) throw new Error(`the server ${serverPid} has no guard`);
  return Number.parseInt(line, 10);
}

async function processes(args: string): Promise<string> {
  const listed = promisify(execFile)('ps', args.split(' '));
  return listed.then(({ stdout }) => stdout).catch(() => '');
}
