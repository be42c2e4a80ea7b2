/** Keeps one server running on one port until it is told to stop. */

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readLogSince, sizeOf } from '#infra/_shared/postgres/log-file.ts';
import {
  type ServerExit,
  type ServerProcess,
  type ServerProcessOptions,
  startServerProcess,
} from '#infra/_shared/postgres/server-process.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
const STABLE_AFTER_MS = 10_000;
const START_ATTEMPTS = 60;
// Somebody took the port between our look and the start.
const PORT_TAKEN = /could not (?:bind|create any TCP)/;
// Backends of a server that was killed end with their statement; until then their memory is not ours.
const MEMORY_IN_USE = /shared memory block .* is still in use/;

export interface SupervisorOptions extends Omit<ServerProcessOptions, 'port'> {
  /** Absent: that of the last run, or else a free one. */
  readonly port: number | undefined;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Called each time that the server ended by itself, before it is started again. */
  readonly onUnexpectedExit?: (exit: ServerExit) => void;
}

export interface Supervisor {
  readonly port: number;
  /** Of the run that is current. */
  pid(): number;
  stop(): Promise<void>;
}

/** Answers when the server accepts connections. @throws {StartError} with what the server says when it does not start. */
export async function supervise(options: SupervisorOptions): Promise<Supervisor> {
  const { port, first } = await startFirst(options);
  const stopping = new AbortController();
  let current = first;
  const supervision = keepRunning();

  async function keepRunning(): Promise<void> {
    let delayMs = FIRST_DELAY_MS;
    while (!stopping.signal.aborted) {
      const startedMs = Date.now();
      const logOffset = await sizeOf(options.logFile);
      const exit = await current.exit;
      if (stopping.signal.aborted) return;
      const said = await readLogSince(options.logFile, logOffset);
      options.log.error({ ...exit, said, delayMs }, 'PostgreSQL ended by itself; it is started again');
      options.onUnexpectedExit?.(exit);
      if (Date.now() - startedMs > STABLE_AFTER_MS) delayMs = FIRST_DELAY_MS;
      await delay(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      delayMs = Math.min(delayMs * 2, MAX_DELAY_MS);
      if (!stopping.signal.aborted) await startNext();
    }
  }

  async function startNext(): Promise<void> {
    try {
      current = await startServerProcess({ ...options, port });
      // stop() may have looked at the one before.
      if (stopping.signal.aborted) await current.stop();
      else if (await current.ready()) options.log.info({ pid: current.pid, port }, 'PostgreSQL runs again');
    } catch (error) {
      options.log.error({ reason: messageOf(error) }, 'PostgreSQL cannot be started');
    }
  }

  return {
    port,
    pid: () => current.pid,
    async stop(): Promise<void> {
      stopping.abort();
      await current.stop();
      await supervision;
    },
  };
}

async function startFirst(options: SupervisorOptions): Promise<{ port: number; first: ServerProcess }> {
  // What was told of databases on it stays true.
  let before = await lastPort(options.clusterDirectory);
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? before ?? (await freePort());
    const logOffset = await sizeOf(options.logFile);
    const server = await startServerProcess({ ...options, port });
    if (await server.ready()) return { port, first: server };
    const said = await readLogSince(options.logFile, logOffset);
    if (PORT_TAKEN.test(said)) before = undefined;
    const canPass = MEMORY_IN_USE.test(said) || (options.port === undefined && PORT_TAKEN.test(said));
    if (!canPass || attempt === START_ATTEMPTS) {
      throw new StartError(`PostgreSQL does not start: ${said || 'it says nothing'} (${options.logFile})`);
    }
    await delay(Math.min(FIRST_DELAY_MS * attempt, MAX_DELAY_MS));
  }
}

/** PostgreSQL keeps the command line of its last start. */
async function lastPort(clusterDirectory: string): Promise<number | undefined> {
  const options = await readFile(join(clusterDirectory, 'postmaster.opts'), 'utf8').catch(() => '');
  const port = /port=(\d+)/.exec(options)?.[1];
  return port === undefined ? undefined : Number(port);
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === 'string') throw new StartError('no free TCP port on 127.0.0.1');
  return address.port;
}
