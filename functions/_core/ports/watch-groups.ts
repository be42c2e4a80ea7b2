/**
 * PORT. Groups: consumers that share the events of some tenants. Each stream has lanes; one member at a time holds a lane,
 * and only with the lane's fence can anything be confirmed on it. All of it lives in the database, so that any process can
 * take acks and any process can go on where another one died.
 *
 * A lane begins anew (its fence rises) whenever its events are delivered again: another member takes it, an event is
 * refused, a position is set by hand. What was delivered before is then counted as an attempt.
 */

import type { Audience, GrantedTenants } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';

/** Groups are the same when all of this is: two owners, or two audiences, never share one by its name. */
export interface GroupIdentity {
  readonly audience: Audience;
  readonly tenants: GrantedTenants;
  /** The subject of its members' tokens. */
  readonly owner: string;
  /** A DNS label. */
  readonly name: string;
}

export interface JoinRequest extends GroupIdentity {
  /** What the members select, as canonical text: the same for all of them. */
  readonly selection: string;
  /** Where a new group begins. Streams that come later are always read from their beginning. */
  readonly start: 'earliest' | 'now';
  readonly leaseMs: number;
}

export interface Membership {
  readonly group: bigint;
  readonly member: bigint;
  /** This member made the group. */
  readonly isNew: boolean;
  /** When the group of this identity before it was dropped because nobody came for long: its positions were lost. */
  readonly droppedAt: Date | undefined;
}

/** One lane of one stream in one group. */
export interface LaneRef {
  readonly group: bigint;
  readonly stream: bigint;
  readonly lane: number;
}

/** A lane as its holder knows it: nothing is written with a fence that has been replaced. */
export interface HeldLane extends LaneRef {
  readonly fence: bigint;
}

/** A lane that a member holds. */
export interface AssignedLane extends HeldLane {
  readonly member: bigint;
  readonly tenant: string;
  /** Everything up to here is confirmed. Undefined: it begins at the oldest event that is kept. */
  readonly confirmed: LogPoint | undefined;
  /**
   * For each time that the lane began anew: the last event that had been delivered. An event is delivered for the
   * (1 + number of these at or behind it)th time.
   */
  readonly deliveredBefore: readonly bigint[];
  /** Nothing is delivered before this many milliseconds from now: an event was refused with a delay. */
  readonly pauseMs: number;
  /** Another member waits for it: nothing more is to be delivered, and it is released once all is confirmed. */
  readonly isWanted: boolean;
  /** Parked events of the lane that somebody asked to be delivered again. */
  readonly retries: readonly DeadLetter[];
}

/** What a holder tells of a lane. */
export interface LaneMark extends HeldLane {
  /** The last event that was delivered, if any was since the last mark. */
  readonly delivered?: bigint | undefined;
  /** Everything up to here is of no concern to the group, or confirmed. */
  readonly confirmed?: LogPoint | undefined;
}

export interface Ack extends HeldLane {
  readonly point: LogPoint;
}

export interface Nack extends Ack {
  /** 0 or more. */
  readonly delayMs: number;
}

/**
 * Acked: confirmed. Duplicate: it was before. Fenced: the lane has begun anew since, so the event comes again. Unknown: no
 * such lane, or not the caller's.
 */
export type AckResult = 'Acked' | 'Duplicate' | 'Fenced' | 'Unknown';

/** Who acks: lanes of groups of others are Unknown. */
export type GroupOwner = Pick<GroupIdentity, 'audience' | 'owner'>;

/** An event that was delivered too often. */
export interface DeadLetter {
  readonly id: bigint;
  readonly stream: bigint;
  readonly lane: number;
  readonly point: LogPoint;
  readonly tenant: string;
  /** The data of the event's frame: a CloudEvent. */
  readonly event: string;
  readonly type: string;
  readonly attempts: number;
  readonly reason: string;
  readonly parkedAt: Date;
}

export interface GroupDeletion {
  readonly group: bigint;
  /** A subject. */
  readonly by: string;
  readonly reason: string;
}

export interface WatchGroups {
  /**
   * Makes a member, and the group when there is none. Lanes are shared out anew, at most those that must move: members
   * that hold them hand them over.
   * @throws {StatusError} Conflict while members select something else; TooManyRequests beyond the groups of one owner.
   */
  join(request: JoinRequest): Promise<Membership>;

  /** Keeps members alive; those that are not returned have lost everything. Waits for nobody who settles a group. */
  renew(members: readonly bigint[], leaseMs: number): Promise<readonly bigint[]>;

  /**
   * Those of these groups that are to be settled: members are not alive any more, streams are new or ended, lanes were not
   * handed over in time. Costs nothing by the lane while nothing changes.
   */
  unsettled(groups: readonly bigint[]): Promise<readonly bigint[]>;

  /**
   * Lanes of members that are not alive any more are shared out; new streams get their lanes, and ended ones, all of which is
   * confirmed in every lane, lose them. Does nothing in a group that is settled, or has ended.
   */
  settle(group: bigint): Promise<void>;

  /** Of these groups those that were deleted. */
  deletions(groups: readonly bigint[]): Promise<readonly GroupDeletion[]>;

  /** What these members hold now, of those that live. */
  lanes(members: readonly bigint[]): Promise<readonly AssignedLane[]>;

  /**
   * A number for each of these groups that lives: a higher one once anything was assigned, wanted, asked for again or set by
   * hand in it. Costs nothing by the lane.
   */
  versions(groups: readonly bigint[]): Promise<ReadonlyMap<bigint, bigint>>;

  /** Those of these groups that have lanes, whoever holds them. */
  withLanes(groups: readonly bigint[]): Promise<ReadonlySet<bigint>>;

  /** Where these lanes are confirmed up to now, for those still held with this fence. */
  confirmedPoints(lanes: readonly HeldLane[]): Promise<readonly (HeldLane & { readonly confirmed: LogPoint })[]>;

  /** Keeps what was delivered and what needs no ack. Marks with a replaced fence change nothing. */
  mark(marks: readonly LaneMark[]): Promise<void>;

  /** Hands lanes over to who waits for them. A lane that nobody waits for any more stays with its holder, as it is. */
  release(lanes: readonly HeldLane[]): Promise<void>;

  /**
   * The members end, and their groups are settled, each once. What they were delivered and have not confirmed is delivered
   * to others.
   */
  leave(members: readonly bigint[], marks: readonly LaneMark[]): Promise<void>;

  /** In the order of the acks. Cumulative: confirms everything of the lane up to the point. */
  ack(owner: GroupOwner, acks: readonly Ack[]): Promise<readonly AckResult[]>;

  /** In the order of the nacks. The lane begins anew behind its last ack, after the delay. */
  nack(owner: GroupOwner, nacks: readonly Nack[]): Promise<readonly AckResult[]>;

  /** Takes an event out of its lane, which goes on behind it. False when the lane is not held any more. */
  park(lane: HeldLane, letter: Omit<DeadLetter, 'id' | 'stream' | 'lane' | 'parkedAt'>): Promise<boolean>;

  /** A parked event was delivered again and is confirmed: it is forgotten. */
  ackDeadLetters(
    owner: GroupOwner,
    letters: readonly { readonly group: bigint; readonly id: bigint }[],
  ): Promise<readonly AckResult[]>;

  /** A parked event was delivered again and refused: it stays parked, and is not in `retries` until it is asked for again. */
  nackDeadLetters(
    owner: GroupOwner,
    letters: readonly { readonly group: bigint; readonly id: bigint }[],
  ): Promise<readonly AckResult[]>;

  /** Calls back soon after anything was assigned, wanted or set in any group, and at least every few seconds. */
  onChange(listener: (group: bigint | undefined) => void, signal: AbortSignal): void;
}
