/** The broker that a killed process left running, until its guard has stopped it. */

import { execFile } from 'node:child_process';
import { readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PID_FILE } from '#infra/kafka/broker-process.ts';

const POLL_MS = 20;
const PATIENCE_MS = 10_000;

/**
 * Stops the broker that still runs in a node's folder. Call it under the cluster's lock: then no living process of ours
 * runs one there. A process that only has the pid of a dead broker is left alone.
 */
export async function stopOrphan(directory: string): Promise<void> {
  const pid = Number.parseInt(await readFile(join(directory, PID_FILE), 'utf8').catch(() => ''), 10);
  if (!(pid > 0)) return;
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!(await isBrokerOf(pid, directory)) || !send(pid, signal)) return;
    // One that is frozen hears only this.
    send(pid, 'SIGCONT');
    const deadline = Date.now() + PATIENCE_MS;
    while (Date.now() < deadline && (await isBrokerOf(pid, directory))) await delay(POLL_MS);
  }
}

/** A broker's working directory is its node's folder. */
async function isBrokerOf(pid: number, directory: string): Promise<boolean> {
  const workingDirectory =
    process.platform === 'linux' ? await readlink(`/proc/${pid}/cwd`).catch(() => '') : await askLsof(pid);
  return workingDirectory === (await realpath(directory));
}

/** macOS has no /proc. In this form the name of the file, after an "n", is the last line. */
async function askLsof(pid: number): Promise<string> {
  const asked = promisify(execFile)('lsof', ['-a', '-p', String(pid), '-d', 'cwd', '-Fn']);
  const listed = await asked.then(({ stdout }) => stdout).catch(() => '');
  return listed.trim().split('\n').at(-1)?.slice(1) ?? '';
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
