/** The cron of one machine: `wrangler dev` has none, it only answers when it is asked for a scheduled run. */

import type { Logger } from 'pino';

const EVERY_MS = 60_000;

export interface Cron {
  stop(): void;
}

/** Now, and every minute. @param url of wrangler's scheduled run. */
export function startCron(url: string, logger: Logger): Cron {
  void run();
  const timer = setInterval(() => void run(), EVERY_MS);
  return { stop: () => clearInterval(timer) };

  async function run(): Promise<void> {
    try {
      const { ok, status } = await fetch(url);
      if (!ok) logger.warn({ status }, 'a scheduled run failed');
    } catch (error) {
      logger.warn({ err: error }, 'workerd does not answer; the next scheduled run is in a minute');
    }
  }
}
