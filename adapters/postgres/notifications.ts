/**
 * NOTIFY as "look again": a listener is called after each notification, whenever the listening connection was lost and
 * made anew (what was sent meanwhile is lost), and at a floor, so that a missed wake-up costs a delay and nothing else.
 */

import type { Sql } from '#adapters/postgres/client.ts';

export interface ListenOptions {
  readonly channel: string;
  /** The longest time between two calls. */
  readonly floorMs: number;
}

/**
 * Calls `listener` until the signal aborts, with the notification's payload, or undefined when it may have missed some.
 * All channels of one pool share one connection.
 */
export function onNotification(
  sql: Sql,
  options: ListenOptions,
  listener: (payload?: string) => void,
  signal: AbortSignal,
): void {
  const floor = setInterval(() => listener(), options.floorMs);
  signal.addEventListener('abort', () => clearInterval(floor), { once: true });
  // The driver listens again by itself, also when the first attempt fails; the floor keeps calling meanwhile.
  sql
    .listen(options.channel, listener, () => listener())
    .then(
      (subscription) => {
        const end = (): void => void subscription.unlisten().catch(() => undefined);
        if (signal.aborted) end();
        else signal.addEventListener('abort', end, { once: true });
      },
      () => undefined,
    );
}
