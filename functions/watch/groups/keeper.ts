/** What a member's session is made of, and what the process does for it. */

import type { AckTokens } from '#core/ack-token.ts';
import type { Audience, TenantSet } from '#core/identity.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { SseSink } from '#core/ports/sse.ts';
import type { DeadLetter, Membership, Parking, Retry } from '#core/ports/watch-groups.ts';
import type { Lane, LaneLimits } from '#functions/watch/groups/member/lane.ts';
import type { HeldRuns } from '#functions/watch/groups/member/held-runs.ts';
import type { Slots } from '#functions/watch/pacing/slots.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Tails } from '#functions/watch/tail/tails.ts';
import type { Turns } from '#functions/watch/pacing/turns.ts';

/** What the process does for its members. */
export interface GroupKeeper {
  readonly log: EventLog;
  readonly tails: Tails;
  readonly ackTokens: AckTokens;
  /** Reads of the log that lanes need which are behind. */
  readonly slots: Slots;
  readonly heldRuns: HeldRuns;
  /** Members deliver in turns. */
  readonly turns: Turns;
  /** Makes an event of a lane a dead letter; resolves when it is, or is not to be now. Never rejects. */
  park(lane: Lane, parking: Parking): Promise<void>;
  /** See `WatchGroups.deliverDeadLetters`. Undefined when they cannot be had for now, some time later. Never rejects. */
  deadLetters(membership: Membership, retries: readonly Retry[]): Promise<readonly DeadLetter[] | undefined>;
  /** Something may have changed: the lanes of the group are looked at. */
  reload(group: bigint): void;
  /** The session has ended: its lanes are for others. */
  ended(member: bigint): void;
  onRedelivery(): void;
  /** The selection of the group failed over an event. */
  onFilterFailed(group: bigint, message: string): void;
  onIsolationViolation(stream: bigint): void;
  onError(error: unknown): void;
}

export interface GroupSessionDeps {
  readonly keeper: GroupKeeper;
  readonly sink: SseSink;
  readonly membership: Membership;
  readonly audience: Audience;
  readonly tenants: TenantSet;
  /** By the client, one by one. */
  readonly tenantsAreNamed: boolean;
  readonly selection: Selection;
  readonly limits: LaneLimits;
  readonly ackWaitMs: number;
  /** By this process's clock, `performance.now()`. */
  readonly leaseEndsAtMs: number;
}
