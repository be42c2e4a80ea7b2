/** A client's stream, as the clock of all streams sees it: a watcher, or a member of a group. */

import type { StatusError } from '#core/status-error.ts';
import type { Filter } from '#functions/watch/filter/compile.ts';

/** Why a stream ended. `ack`: something lay unacked for too long. `lease`: the membership was not renewed in time. */
export type WatchEnd =
  | 'client'
  | 'age'
  | 'token'
  | 'blocked'
  | 'slow'
  | 'shutdown'
  | 'tenant'
  | 'error'
  | 'ack'
  | 'lease';

export type WatchMode = 'broadcast' | 'group';

export interface TimedStream {
  readonly mode: WatchMode;
  readonly isClosed: boolean;
  /** What it asks of every event. */
  readonly filter: Filter | undefined;
  /** Why it ended by itself. */
  readonly endedBy: WatchEnd | undefined;
  /** See `Outlet`. */
  blockedMs(nowMs: number): number;
  /** Heartbeat and progress in one. */
  bookmark(): void;
  /** Ends it in peace. */
  finish(): void;
  /** Ends it with an error: Unauthorized, Forbidden (tenants are lost; whoever asked for all goes on without them) … */
  end(error: StatusError): void;
  /** The connection is gone. */
  closed(): void;
}
