/** TCP ports of 127.0.0.1. */

import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { StartError, hasCode, messageOf } from '#infra/_shared/life/start-error.ts';

/**
 * Below the ports that Linux (32768 on) and macOS (49152 on) give to outgoing connections: while a broker is down, one of
 * those could take its port, even the very connection that a client tries to the broker, which then reaches itself.
 */
const FIRST = 20_000;
const LAST = 31_999;

/** Ports that nobody listens on now, all different, and none of `except`. */
export async function freePorts(count: number, except: readonly number[] = []): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = randomInt(FIRST, LAST + 1);
    if (except.includes(port)) continue;
    if (await listenProblem(port).then((problem) => problem === undefined)) found.add(port);
  }
  return [...found];
}

/** @throws {StartError} when a broker could not listen there. */
export async function requireFreePort(port: number): Promise<void> {
  const problem = await listenProblem(port);
  if (problem === undefined) return;
  const reason = hasCode(problem, 'EADDRINUSE')
    ? 'is in use by another process'
    : `cannot be had: ${messageOf(problem)}`;
  throw new StartError(
    `port ${port} of 127.0.0.1 ${reason}; stop that process, or give Kafka another port (KAFKA_PORT)`,
  );
}

async function listenProblem(port: number): Promise<Error | undefined> {
  const probe = createServer();
  const problem = await new Promise<Error | undefined>((resolve) => {
    probe.once('error', resolve).listen({ host: '127.0.0.1', port }, () => resolve(undefined));
  });
  if (problem === undefined) await new Promise((resolve) => probe.close(resolve));
  return problem;
}
