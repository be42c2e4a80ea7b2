/**
 * Notifications that are told by calls, in place of LISTEN: a transaction pooler has no connection to listen on. What is
 * not told is found at the floors of who listens.
 */

import type { ListenMeta, ListenRequest } from 'postgres';

/** One notification of PostgreSQL: "look again". */
export interface Notice {
  readonly channel: string;
  readonly payload: string;
}

export interface Notices {
  /** For a pool; see `ConnectOptions`. */
  listen(channel: string, onNotice: (payload: string) => void, onListen?: () => void): ListenRequest;
  tell(notice: Notice): void;
}

export function createNotices(): Notices {
  const listeners = new Map<string, Set<(payload: string) => void>>();
  return { listen, tell };

  function listen(channel: string, onNotice: (payload: string) => void, onListen?: () => void): ListenRequest {
    const ofChannel = listeners.get(channel) ?? new Set();
    listeners.set(channel, ofChannel.add(onNotice));
    onListen?.();
    const meta = {
      state: undefined,
      async unlisten(): Promise<void> {
        ofChannel.delete(onNotice);
      },
    } as unknown as ListenMeta;
    return Promise.resolve(meta) as ListenRequest;
  }

  function tell({ channel, payload }: Notice): void {
    for (const listener of listeners.get(channel) ?? []) listener(payload);
  }
}
