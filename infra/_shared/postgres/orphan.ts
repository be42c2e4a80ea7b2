/** The PostgreSQL that a killed process left running. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { readPostmaster, takeOverPostmaster } from '#infra/_shared/postgres/postmaster-file.ts';

const POLL_MS = 20;
/** Fast shutdown, immediate shutdown, and what no process can refuse. */
export const STOP_SIGNALS: readonly { readonly signal: NodeJS.Signals; readonly patienceMs: number }[] = [
  { signal: 'SIGINT', patienceMs: 15_000 },
  { signal: 'SIGQUIT', patienceMs: 5_000 },
  { signal: 'SIGKILL', patienceMs: 5_000 },
];

/**
 * Stops the server that still runs on a cluster, and makes way for the next. Call it under the home's lock: then no
 * living process of ours uses the cluster. A process that only has the pid of a dead server is left alone.
 */
export async function stopOrphan(clusterDirectory: string, log: Pick<Logger, 'warn'>): Promise<void> {
  const state = await readPostmaster(clusterDirectory);
  if (!state) return;
  if (await isServer(state.pid, clusterDirectory)) {
    log.warn({ pid: state.pid }, 'stopping the PostgreSQL that a killed process left running');
    await stop(state.pid, clusterDirectory);
  }
  // A server that was killed leaves its file. PostgreSQL would take a zombie, or a stranger with the pid, for alive.
  if (await readPostmaster(clusterDirectory)) await takeOverPostmaster(clusterDirectory);
}

async function stop(pid: number, clusterDirectory: string): Promise<void> {
  for (const { signal, patienceMs } of STOP_SIGNALS) {
    const deadline = Date.now() + patienceMs;
    if (!send(pid, signal)) return;
    while (Date.now() < deadline) {
      await delay(POLL_MS);
      if (!(await isServer(pid, clusterDirectory))) return;
    }
  }
}

async function isServer(pid: number, clusterDirectory: string): Promise<boolean> {
  const command = (await commandLine(pid)) ?? '';
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
