/** The PostgreSQL that a killed process left running. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { readPostmaster, takeOverPostmaster } from '#infra/local/postgres/postmaster-file.ts';

const POLL_MS = 20;
/** Fast shutdown, immediate shutdown, and what no process can refuse. */
export const STOP_SIGNALS: readonly { readonly signal: NodeJS.Signals; readonly patienceMs: number }[] = [
  { signal: 'SIGINT', patienceMs: 15_000 },
  { signal: 'SIGQUIT', patienceMs: 5_000 },
  { signal: 'SIGKILL', patienceMs: 5_000 },
];

/**
 * Stops the server that still runs on a cluster. Call it under the home's lock: then no living process of ours uses it.
 * A process that only has the pid of a dead server is left alone.
 */
export async function stopOrphan(clusterDirectory: string, log: Pick<Logger, 'warn'>): Promise<void> {
  const state = await readPostmaster(clusterDirectory);
  if (!state) return;
  const command = await commandLine(state.pid);
  if (command === undefined) return;
  if (!isServerOf(command, clusterDirectory)) return takeOverPostmaster(clusterDirectory);
  log.warn({ pid: state.pid }, 'stopping the PostgreSQL that a killed process left running');
  for (const { signal, patienceMs } of STOP_SIGNALS) {
    const deadline = Date.now() + patienceMs;
    if (!send(state.pid, signal)) return;
    while (Date.now() < deadline) {
      await delay(POLL_MS);
      const now = await commandLine(state.pid);
      if (now === undefined || !isServerOf(now, clusterDirectory)) return;
    }
  }
}

function isServerOf(command: string, clusterDirectory: string): boolean {
  return command.includes('postgres') && command.includes(clusterDirectory);
}

/** Undefined when there is no such process. A zombie has an empty one. */
async function commandLine(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const bytes = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
    return bytes?.replaceAll('\0', ' ');
  }
  // -ww: not cut at the width of a terminal.
  const listed = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => undefined);
  return listed?.stdout;
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
