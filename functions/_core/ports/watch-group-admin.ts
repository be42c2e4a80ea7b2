/**
 * PORT. Groups as those see them who look after them: how far they are, their dead letters, and what is done to them by
 * hand.
 * Reasons are kept.
 */

import type { Audience, GrantedTenants } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { DeadLetter, GroupIdentity } from '#core/ports/watch-groups.ts';

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  /** There are others behind them. */
  readonly more: boolean;
}

export interface LanePlace {
  readonly stream: bigint;
  readonly lane: number;
}

export interface LaneState extends LanePlace {
  readonly tenant: string;
  readonly member: bigint | undefined;
  /** Everything of the lane up to this event of its stream is confirmed, or of no concern. */
  readonly confirmedSeq: bigint;
  /** How many events its stream has behind the confirmed one, of all lanes. A holder tells within 3 s what was of no concern. */
  readonly streamLag: bigint;
  /** Since when something is delivered and not confirmed. */
  readonly unackedSince: Date | undefined;
}

export interface GroupState extends GroupIdentity {
  readonly group: bigint;
  readonly selection: string;
  /** What of the selection failed over an event, and ended a member, the last time. */
  readonly failure: { readonly message: string; readonly at: Date } | undefined;
  readonly createdAt: Date;
  /** Since when it has no members. */
  readonly idleSince: Date | undefined;
  readonly members: readonly { readonly member: bigint; readonly joinedAt: Date; readonly lanes: number }[];
  /** The most that any of its lanes has. */
  readonly streamLag: bigint;
  readonly oldestUnacked: Date | undefined;
  readonly deadLetters: number;
}

/** Which groups are asked for: those whose tenants are all among these. */
export interface GroupQuery {
  readonly audience: Audience;
  readonly tenants: GrantedTenants;
  /** Undefined: of all owners. */
  readonly owner: string | undefined;
}

/** How all groups are doing, for metrics. */
export interface WatchGroupTotals {
  readonly groups: number;
  readonly members: number;
  /** The most that any of them has. */
  readonly streamLag: number;
  /** How long something has been delivered at the most, and nothing confirmed. */
  readonly oldestUnackedSeconds: number;
  /** Counted to 10,000. */
  readonly deadLetters: number;
}

/** Whose doing, and why: both are kept. */
export interface AdminAct {
  readonly by: string;
  readonly reason: string;
}

export interface WatchGroupAdmin {
  /** Groups of an audience, in the order of their ids, after one of them; see `GroupQuery`. */
  list(query: GroupQuery, after: bigint, limit: number): Promise<readonly GroupState[]>;
  get(identity: GroupIdentity): Promise<GroupState | undefined>;
  /** In the order of streams and lanes, after one of them. */
  laneStates(group: bigint, after: LanePlace, limit: number): Promise<readonly LaneState[]>;

  /** In the order of their ids, after one of them: fewer than the limit when they are large, at least one if there is one. */
  deadLetters(group: bigint, after: bigint, limit: number): Promise<DeadLetterPage>;
  /** Delivers it again, ahead of its lane. False when there is none. */
  retryDeadLetter(group: bigint, id: bigint, act: AdminAct): Promise<boolean>;
  skipDeadLetter(group: bigint, id: bigint, act: AdminAct): Promise<boolean>;

  /**
   * All lanes begin anew: at the oldest event, at the head, or behind these points (streams without one: their beginning).
   * Attempts are counted anew.
   * @throws {StatusError} NotFound when the group is gone.
   */
  seek(group: bigint, to: 'earliest' | 'now' | ReadonlyMap<bigint, LogPoint>, act: AdminAct): Promise<void>;
  /**
   * As if it were new: all lanes begin anew at the oldest event, and dead letters are forgotten. Its members stay.
   * @throws {StatusError} NotFound when the group is gone.
   */
  reset(group: bigint, act: AdminAct): Promise<void>;
  /** Members are ended; positions and dead letters are gone. */
  delete(group: bigint, act: AdminAct): Promise<boolean>;

  /** Drops groups that nobody has been a member of for so long, a few at a time. Returns how many in all. */
  dropIdle(idleMs: number): Promise<number>;

  /**
   * Forgets groups that ended so long ago, so that their successors are told of no loss any more, and what was done by hand
   * so long ago. Returns how many of both.
   */
  forgetEnded(keptMs: number): Promise<number>;
}
