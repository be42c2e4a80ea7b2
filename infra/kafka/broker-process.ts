/** One run of a broker, from spawn to exit. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

/** What a run needs of an installation. */
export interface KafkaPrograms {
  readonly java: string;
  readonly classPath: string;
  /** A file of `class-archive.ts`. Absent: starts take 1 s longer. */
  readonly classArchive: string | undefined;
}

export interface BrokerProcessOptions {
  readonly programs: KafkaPrograms;
  /** The node's, with a `server.properties`. */
  readonly directory: string;
  /** @default -Xmx256m */
  readonly javaOptions?: readonly string[];
}

export interface BrokerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface BrokerProcess {
  readonly pid: number;
  /** Aborted when the process is gone. */
  readonly gone: AbortSignal;
  /** Settles once, when the process is gone. */
  readonly exit: Promise<BrokerExit>;
  kill(signal: NodeJS.Signals): void;
  /** Flushes and ends, also when it is frozen; killed when that takes longer than `patienceMs`. */
  stop(patienceMs: number): Promise<void>;
}

export const LOG_FILE = 'kafka.log';
export const PID_FILE = 'kafka.pid';
const LOG_CONFIGURATION = pathToFileURL(fileURLToPath(new URL('log4j2.properties', import.meta.url))).href;

/** Arguments of Java that every run has: those of the archive's writer and its readers must agree on most. */
export function javaArguments({ classPath, classArchive }: KafkaPrograms): string[] {
  return [
    // Small and soon ready: no compiler threads and collector threads that a developer's machine would feel.
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    // Without memory a broker would go on, half dead.
    '-XX:+ExitOnOutOfMemoryError',
    `-Dlog4j2.configurationFile=${LOG_CONFIGURATION}`,
    ...(classArchive === undefined ? [] : [`-XX:SharedArchiveFile=${classArchive}`]),
    '-cp',
    classPath,
  ];
}

/** Starts a broker in a session of its own: Ctrl-C in the terminal is for us, not for it. It ends with this process. */
export async function startBrokerProcess(options: BrokerProcessOptions): Promise<BrokerProcess> {
  const { programs, directory, javaOptions = ['-Xmx256m'] } = options;
  const log = openSync(join(directory, LOG_FILE), 'a', 0o600);
  const child = spawn(programs.java, [...javaOptions, ...javaArguments(programs), 'kafka.Kafka', 'server.properties'], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  await once(child, 'spawn').catch((error: unknown) => {
    throw new StartError(`${programs.java} cannot be started: ${messageOf(error)}`, { cause: error });
  });
  const broker = brokerProcess(child);
  await writeFile(join(directory, PID_FILE), `${broker.pid}\n`);
  return broker;
}

function brokerProcess(child: ChildProcess): BrokerProcess {
  const pid = child.pid ?? 0;
  const guard = startGuard(pid);
  const gone = new AbortController();
  const exit = new Promise<BrokerExit>((resolve) => {
    child.once('exit', (code, signal) => {
      guard?.kill('SIGKILL');
      gone.abort();
      resolve({ code, signal });
    });
  });
  // A signal that cannot be sent, because it just exited.
  child.on('error', () => undefined);

  async function stop(patienceMs: number): Promise<void> {
    child.kill('SIGTERM');
    child.kill('SIGCONT');
    await delay(patienceMs, undefined, { signal: gone.signal }).catch(() => undefined);
    child.kill('SIGKILL');
    await exit;
  }

  return { pid, gone: gone.signal, exit, kill: (signal) => void child.kill(signal), stop };
}

/**
 * A shell that waits for the end of our pipe to it, which the kernel closes however we end, and then stops the broker.
 * It costs 1 MiB. Windows has no such shell.
 */
function startGuard(pid: number): ChildProcess | undefined {
  if (process.platform === 'win32') return undefined;
  const script =
    'read -r _; kill -TERM "$1"; kill -CONT "$1"; n=0; ' +
    'while [ $n -lt 100 ]; do sleep 0.1; kill -0 "$1" 2>/dev/null || exit; n=$((n+1)); done; kill -KILL "$1"';
  const guard = spawn('/bin/sh', ['-c', script, 'plumbline-kafka-guard', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell the broker is merely unguarded.
  guard.on('error', () => undefined);
  return guard;
}
