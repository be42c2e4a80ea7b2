/**
 * Wrangler that answers. It starts workerd again when that has died, but after the death of the one in front its port takes
 * requests and answers none, for good. So it is asked all the time, and is started anew when it stays silent.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { startWrangler, type Wrangler, type WranglerOptions } from '#infra/cloudflare/dev/wrangler.ts';
import { freePorts } from '#infra/kafka/ports.ts';

export interface KeptWranglerOptions extends Omit<WranglerOptions, 'port'> {
  /** Where it listens now is noted here, on the loopback interface: another port after each start. */
  readonly place: { port: number };
  /** Answers with success while the worker runs, whatever becomes of its database. */
  readonly healthUrl: string;
}

const LOOK_MS = 1_000;
const LOOK_LIMIT_MS = 5_000;
/** A worker that is started again by wrangler answers within that, also on a machine that is busy. */
const SILENCE_MS = 15_000;

/** Answers when workerd does. @throws {StartError} as `startWrangler` does. */
export async function keepWrangler(options: KeptWranglerOptions): Promise<Pick<Wrangler, 'ended' | 'stop'>> {
  const { place, healthUrl, logger } = options;
  const stopping = new AbortController();
  let wrangler = await start();
  const ended = keep();
  ended.catch(() => undefined);
  return {
    ended,
    async stop(): Promise<void> {
      stopping.abort();
      await wrangler.stop();
    },
  };

  async function start(): Promise<Wrangler> {
    const [port] = await freePorts(1);
    place.port = port!;
    return startWrangler({ ...options, port: port! });
  }

  /** Rejects when it ends by itself, or does not start again. */
  async function keep(): Promise<never> {
    while (true) {
      await Promise.race([untilSilent(healthUrl, stopping.signal), wrangler.ended]);
      if (stopping.signal.aborted) return new Promise<never>(() => undefined);
      logger.error({ silentMs: SILENCE_MS }, 'workerd does not answer; wrangler is started again');
      await wrangler.stop();
      wrangler = await start();
      logger.info('workerd answers again');
    }
  }
}

/** Resolves when there was no good answer for a while, or the signal aborts. */
async function untilSilent(url: string, signal: AbortSignal): Promise<void> {
  let goodAtMs = performance.now();
  while (!signal.aborted && performance.now() - goodAtMs < SILENCE_MS) {
    if (await isGood(url, signal)) goodAtMs = performance.now();
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function isGood(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(LOOK_LIMIT_MS)]) });
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
}
