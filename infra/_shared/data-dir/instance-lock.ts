/**
 * At most one process works in a folder. The lock is the kernel's (fcntl, taken by SQLite on an empty database), so it
 * ends with its process, however that ends: a file that kill -9 left behind means nothing, whatever process has that
 * pid by now, and taking over is free of races. It also holds between containers that share a volume, where a pid of
 * one means nothing in the other.
 *
 * @see https://www.sqlite.org/lockingv3.html
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const LOCK_FILE = 'instance.lock';
const PID_FILE = 'instance.pid';
const SQLITE_BUSY = 5;
const PID_WAIT_MS = 2_000;
const PID_POLL_MS = 20;

export interface InstanceLock {
  /** Lets the next one in. Calling it again does nothing. */
  release(): void;
}

/**
 * Takes the folder for this process. The folder must exist.
 * @throws {StartError} while another process has it, with its pid.
 */
export async function lockInstance(directory: string): Promise<InstanceLock> {
  const deadline = Date.now() + PID_WAIT_MS;
  for (;;) {
    const database = tryLock(directory);
    if (database) return held(directory, database);
    // Holder and pid are two files: for a moment the pid may be missing, or a former holder's.
    const pid = readPid(directory);
    if (pid !== undefined && isAlive(pid)) throw inUse(directory, `process ${pid}`);
    if (Date.now() > deadline) throw inUse(directory, 'another process, perhaps in another container');
    await delay(PID_POLL_MS);
  }
}

function tryLock(directory: string): DatabaseSync | undefined {
  const path = join(directory, LOCK_FILE);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    // Nothing is ever written, so there is no journal to be left over.
    database.exec('pragma journal_mode = memory; begin exclusive');
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw new StartError(
      `${path} cannot be locked: ${messageOf(error)}; the folder must be writable, on a file system that has file locks`,
      { cause: error },
    );
  }
}

function held(directory: string, database: DatabaseSync): InstanceLock {
  const pidFile = join(directory, PID_FILE);
  writeFileSync(pidFile, `${process.pid}\n`);
  let isHeld = true;
  return {
    release(): void {
      if (!isHeld) return;
      isHeld = false;
      rmSync(pidFile, { force: true });
      database.close();
    },
  };
}

function readPid(directory: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(join(directory, PID_FILE), 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function inUse(directory: string, holder: string): StartError {
  return new StartError(`${directory} is in use by ${holder}; stop that one, or give this one another DATA_DIR`);
}
