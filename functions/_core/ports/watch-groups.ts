/**
 * PORT. Groups: consumers that share the events of some tenants. Each stream has lanes; one member at a time holds a lane,
 * and only with the lane's fence can anything be confirmed on it. All of it lives in the database, so that any process can
 * take acks and any process can go on where another one died.
 *
 * A lane begins anew (its fence rises) whenever its events are delivered again: another member takes it, an event is
 * refused, a position is set by hand. What was delivered before is then counted as an attempt.
 */

import type { Audience, GrantedTenants, TenantSet } from '#core/identity.ts';
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
  /**
   * Where a new group begins; the oldest events are those that the database knows to be kept: `EventLog.ranges` tells it
   * what brokers have removed. Streams that come later are always read from their beginning. What is removed behind that is
   * lost to the group, and found so when it is read.
   */
  readonly start: 'earliest' | 'now';
  /** Of the tenants those that the member does not see: their lanes go to members that do, and wait while none does. */
  readonly blockedTenants?: readonly string[];
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
  /** Everything up to here is confirmed, or was before the lane began. */
  readonly confirmed: LogPoint;
  /**
   * For each time that the lane began anew: the last event that had been delivered. An event is delivered for the
   * (1 + number of these at or behind it)th time.
   */
  readonly deliveredBefore: readonly bigint[];
  /** Nothing is delivered before this many milliseconds from now: an event was refused with a delay. */
  readonly pauseMs: number;
  /** Another member waits for it: nothing more is to be delivered, and it is released once all is confirmed. */
  readonly isWanted: boolean;
  /** Dead letters of the lane that somebody asked to be delivered again, in the order of their ids. */
  readonly retries: readonly Retry[];
}

/** A dead letter that is to be delivered again. */
export interface Retry {
  readonly id: bigint;
  /** Rises whenever it is delivered, refused or asked for again. */
  readonly fence: bigint;
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

/** Who acks: lanes of groups of others, and of tenants that it does not see, are Unknown. */
export interface Acker extends Pick<GroupIdentity, 'audience' | 'owner'> {
  readonly tenants: TenantSet;
}

/** The most dead letters of a group. Lanes that would have another one stand still. */
export const MAX_DEAD_LETTERS = 10_000;

/** An event that was delivered too often. */
export interface DeadLetter extends Retry {
  readonly stream: bigint;
  readonly lane: number;
  readonly point: LogPoint;
  readonly tenant: string;
  /** A CloudEvent, without what is said of a delivery. */
  readonly event: string;
  readonly type: string;
  /** How often it was delivered. */
  readonly attempts: number;
  readonly reason: string;
  readonly parkedAt: Date;
}

/** An event as it becomes a dead letter. */
export type Parking = Omit<DeadLetter, 'id' | 'fence' | 'stream' | 'lane' | 'parkedAt'>;

/** Parked: the lane goes on behind it. Fenced: the lane is not held any more. Full: see MAX_DEAD_LETTERS; nothing was done. */
export type ParkingResult = 'Parked' | 'Fenced' | 'Full';

/** A delivery of a dead letter. */
export interface DeadLetterRef extends Retry {
  readonly group: bigint;
  readonly stream: bigint;
}

export interface GroupDeletion {
  readonly group: bigint;
  /** A subject. */
  readonly by: string;
  readonly reason: string;
}

export interface WatchGroups {
  /** Whether a group of this identity lives. */
  exists(identity: GroupIdentity): Promise<boolean>;

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

  /** Lanes begin anew at their holder: what was delivered on them can be confirmed no more. */
  beginAnew(lanes: readonly HeldLane[]): Promise<void>;

  /** In the order of the acks. Cumulative: confirms everything of the lane up to the point. */
  ack(acker: Acker, acks: readonly Ack[]): Promise<readonly AckResult[]>;

  /** In the order of the nacks. The lane begins anew behind its last ack, after the delay. */
  nack(acker: Acker, nacks: readonly Nack[]): Promise<readonly AckResult[]>;

  /** Keeps what of the group's selection failed over an event. */
  noteFailure(group: bigint, message: string): Promise<void>;

  /** Makes an event of a lane a dead letter. */
  park(lane: HeldLane, event: Parking): Promise<ParkingResult>;

  /**
   * Dead letters that are about to be delivered again to a member, in the order of their ids: of those with these fences the
   * first, up to 4 MiB of them, at least one. Counted as delivered; their fences have risen. After three deliveries without
   * an answer one is not given any more until it is asked for again; nor are those of lanes that the member does not hold,
   * or that another one waits for.
   */
  deliverDeadLetters(member: bigint, retries: readonly Retry[]): Promise<readonly DeadLetter[]>;

  /** Dead letters were delivered again and are confirmed: they are forgotten. Fenced: another delivery followed. */
  ackDeadLetters(acker: Acker, letters: readonly DeadLetterRef[]): Promise<readonly AckResult[]>;

  /** Dead letters were delivered again and refused: they stay, and are in no `retries` until they are asked for again. */
  nackDeadLetters(acker: Acker, letters: readonly DeadLetterRef[]): Promise<readonly AckResult[]>;

  /** Calls back soon after anything was assigned, wanted or set in any group, and at least every few seconds. */
  onChange(listener: (group: bigint | undefined) => void, signal: AbortSignal): void;
}
