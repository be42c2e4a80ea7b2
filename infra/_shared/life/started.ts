/** What a process has started, so that it can be stopped in the reverse order, also when a later part did not start. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { messageOf } from '#infra/_shared/life/start-error.ts';

const STOP_DEADLINE_MS = 30_000;

/** In the order of the start; each with the way to stop it. */
export type Started = { readonly name: string; stop(): void | Promise<void> }[];

/** Backwards; what fails, or takes too long, does not keep the rest running. */
export async function stopAll(started: Started, log: Logger): Promise<void> {
  for (const { name, stop } of started.toReversed()) {
    const patience = new AbortController();
    const expiry = delay(STOP_DEADLINE_MS, undefined, { signal: patience.signal }).then(() => {
      throw new Error(`not stopped within ${STOP_DEADLINE_MS} ms`);
    });
    try {
      await Promise.race([stop(), expiry]);
    } catch (error) {
      log.error({ name, reason: messageOf(error) }, 'could not be stopped in order');
      process.exitCode = 1;
    } finally {
      patience.abort();
      expiry.catch(() => undefined);
    }
  }
}
