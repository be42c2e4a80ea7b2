/**
 * In place of LISTEN, where no connection can listen: listeners look again by themselves. Channels whose news somebody
 * waits for are looked at more often than at their listeners' own floor.
 */

import type { ListenMeta, ListenRequest } from 'postgres';
import type { Sql } from '#adapters/postgres/client.ts';

/** For a pool; see `ConnectOptions`. @param everyMs by channel; others have the floor of who listens. */
export function polledListen(everyMs: Readonly<Record<string, number>>): Sql['listen'] {
  return function listen(channel, onNotice): ListenRequest {
    const period = everyMs[channel];
    // The driver's type wants a payload; listeners take none for "look again".
    const timer = period === undefined ? undefined : setInterval(onNotice as () => void, period);
    const meta = {
      async unlisten(): Promise<void> {
        clearInterval(timer);
      },
    } as unknown as ListenMeta;
    return Promise.resolve(meta) as ListenRequest;
  };
}
