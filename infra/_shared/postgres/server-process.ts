/** One run of the `postgres` program, from spawn to exit. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Account } from '#infra/_shared/postgres/account.ts';
import { STOP_SIGNALS } from '#infra/_shared/postgres/orphan.ts';
import { readPostmaster } from '#infra/_shared/postgres/postmaster-file.ts';
import { toolEnvironment } from '#infra/_shared/postgres/run.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const POLL_MS = 15;

export interface ServerProcessOptions {
  readonly program: string;
  readonly clusterDirectory: string;
  readonly account: Account | undefined;
  readonly logFile: string;
  readonly port: number;
  /** Beside, and over, the ones below. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerProcess {
  readonly pid: number;
  /** Settles once, when the process is gone. */
  readonly exit: Promise<ServerExit>;
  /** True once it accepts connections, which may take long after a crash; false when it exits before. */
  ready(): Promise<boolean>;
  /** Fast shutdown (sessions are cut, data is flushed), harder ones when that takes too long. */
  stop(): Promise<void>;
}

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  idle_in_transaction_session_timeout: '60s',
  // Clients are told their errors; statements, which can hold secrets, stay out of the file.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
};

/** Starts the program in a session of its own: Ctrl-C in the terminal is for us, not for it. */
export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const settings = Object.entries({ ...SETTINGS, ...options.settings, port: String(options.port) });
  const args = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = openSync(options.logFile, 'a', 0o600);
  const child = spawn(options.program, ['-D', options.clusterDirectory, ...args], {
    ...options.account,
    cwd: '/',
    detached: true,
    env: toolEnvironment(),
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  await once(child, 'spawn').catch((error: unknown) => {
    throw new StartError(`${options.program} cannot be started: ${messageOf(error)}`, { cause: error });
  });
  return serverProcess(child, options);
}

function serverProcess(child: ChildProcess, options: ServerProcessOptions): ServerProcess {
  const pid = child.pid ?? 0;
  const guard = startGuard(pid, options.account);
  let hasExited = false;
  const exit = new Promise<ServerExit>((resolve) => {
    child.once('exit', (code, signal) => {
      hasExited = true;
      guard?.kill('SIGKILL');
      resolve({ code, signal });
    });
  });
  // A signal that cannot be sent, because it just exited.
  child.on('error', () => undefined);

  async function ready(): Promise<boolean> {
    while (!hasExited) {
      const state = await readPostmaster(options.clusterDirectory);
      if (state?.pid === pid && state.isReady) return true;
      await delay(POLL_MS);
    }
    return false;
  }

  async function stop(): Promise<void> {
    for (const { signal, patienceMs } of STOP_SIGNALS) {
      child.kill(signal);
      const patience = new AbortController();
      const inTime = await Promise.race([
        exit.then(() => true),
        delay(patienceMs, false, { signal: patience.signal }).catch(() => false),
      ]);
      patience.abort();
      if (inTime) return;
    }
    await exit;
  }

  return { pid, exit, ready, stop };
}

/**
 * A shell that waits for the end of our pipe to it, which the kernel closes however we end, and then stops the server.
 * It costs 1 MiB. Windows has no such shell; there the next start stops what was left.
 */
function startGuard(pid: number, account: Account | undefined): ChildProcess | undefined {
  if (process.platform === 'win32') return undefined;
  const script = 'read -r _; kill -INT "$1"';
  const guard = spawn('/bin/sh', ['-c', script, 'plumbline-postgres-guard', String(pid)], {
    ...account,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell the server is merely unguarded.
  guard.on('error', () => undefined);
  return guard;
}
