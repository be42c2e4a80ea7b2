/** PORT. The directory of streams: which incarnations of which tenants exist. */

import type { Scope } from '#core/identity.ts';

/** The event log of one incarnation of a tenant. */
export interface Stream {
  /** Never reused. */
  readonly id: bigint;
  readonly tenant: string;
  /** The tenant is gone: no event will follow those that are captured. */
  readonly closed: boolean;
  /** Closed, and its last event is in the log. */
  readonly drained: boolean;
}

export interface StreamDirectory {
  /** All streams of the scope that are open, and the closed ones among `alsoIds`. Ordered by id. */
  list(scope: Scope, alsoIds?: readonly bigint[]): Promise<readonly Stream[]>;

  /** Calls back soon after streams were opened or closed, and at least every few seconds, until the signal aborts. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
