/**
 * The life of a server's process: started, and stopped by SIGTERM or SIGINT. `/readyz` fails first; after the delay that
 * whoever balances load needs to see it, each part is stopped in the reverse order of the start.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { type Started, stopAll } from '#infra/_shared/life/started.ts';
import { waitForStopSignal } from '#infra/_shared/life/stop-signals.ts';

export interface StartDeps {
  readonly logger: Logger;
  /** Takes each part, with the way to stop it. */
  readonly started: Started;
  /** Aborts with the first signal. */
  readonly stopSignal: AbortSignal;
}

/** Resolves when all is stopped. @throws what the start throws, once what was started is stopped. */
export async function runUntilStopped(
  { logFormat, logLevel, stopDelaySeconds }: Config,
  start: (deps: StartDeps) => Promise<void>,
): Promise<void> {
  const logger = createLogger({ format: logFormat, level: logLevel });
  tellFaults(logger);
  const stopping = new AbortController();
  const stopSignal = waitForStopSignal();
  void stopSignal.then(() => stopping.abort());
  const started: Started = [];
  try {
    await start({ logger, started, stopSignal: stopping.signal });
    const signal = await stopSignal;
    logger.info({ signal, ...(stopDelaySeconds > 0 && { delaySeconds: stopDelaySeconds }) }, 'stopping');
    await delay(stopDelaySeconds * 1_000);
  } finally {
    await stopAll(started, logger);
  }
  logger.info('stopped');
}

/** Kinds of a team run in this process too. A promise that they forget must not end it; anything worse is told first. */
function tellFaults(log: Logger): void {
  process.on('unhandledRejection', (reason) => {
    log.error({ err: reason }, 'a promise was rejected that nobody waits for: a reconcile function forgot an await?');
  });
  process.on('uncaughtExceptionMonitor', (error) => {
    log.fatal({ err: error }, 'an error was thrown where nobody can catch it; the process ends');
  });
}
