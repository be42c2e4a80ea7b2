/**
 * One lane as its holder sees it, for as long as the lane's fence stays: what was read, what was delivered, what is
 * confirmed. Nothing is confirmed that was delivered and not acked, and no position goes back.
 */

import type { DeliveryAttributes } from '#core/event-json.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { AssignedLane, HeldLane } from '#core/ports/watch-groups.ts';

export interface LaneLimits {
  /** The most events that are delivered and not acked. */
  readonly window: number;
  /** An event is delivered this often, then it is parked: it becomes a dead letter. */
  readonly maxAttempts: number;
}

/** What a member was sent and has not acked. */
export interface Delivery {
  /** Numbers all that the member was sent, over all lanes. */
  readonly index: number;
  readonly atMs: number;
}

/**
 * From the third attempt on, and for the last one, an event is delivered alone: whatever ends its member then is its own
 * doing, and the events behind it collect no attempts.
 */
const ATTEMPTS_TOGETHER = 2;
/** The log is not read for less than this share of the window: it gives many lanes' events at once. */
const AMPLE_SHARE = 0.25;

export class Lane {
  readonly held: HeldLane;
  readonly tenant: string;
  /** As clients see it. */
  readonly name: string;
  /** An event was refused with a delay. */
  readonly pausedUntilMs: number;
  /** Another member waits for it. */
  isWanted = false;
  /** It is being handed over. */
  isReleasing = false;
  /** Its fence has risen, in the database: another of its kind takes its place, here or elsewhere. For good. */
  hasBegunAnew = false;
  readonly #limits: LaneLimits;
  /** Ascending. */
  readonly #deliveredBefore: readonly bigint[];
  readonly #unacked: (Delivery & { readonly point: LogPoint })[] = [];
  #isParking = false;
  #awaitsRest = false;
  #next: LogPoint;
  #ackedSeq: bigint;
  #storedSeq: bigint;
  #unstoredDelivery: bigint | undefined;

  constructor(assigned: AssignedLane, limits: LaneLimits, nowMs: number) {
    const { group, stream, lane, fence, tenant, confirmed, deliveredBefore, pauseMs } = assigned;
    this.held = { group, stream, lane, fence };
    this.tenant = tenant;
    this.name = `${stream}.${lane}`;
    this.#limits = limits;
    this.#deliveredBefore = deliveredBefore.toSorted((a, b) => (a < b ? -1 : 1));
    this.pausedUntilMs = nowMs + pauseMs;
    this.#next = confirmed;
    this.#ackedSeq = confirmed.seq;
    this.#storedSeq = this.#ackedSeq;
  }

  /** Everything up to here was looked at. */
  get next(): LogPoint {
    return this.#next;
  }

  get oldestUnacked(): Delivery | undefined {
    return this.#unacked[0];
  }

  /** Nothing more is delivered on it. */
  get isLetGo(): boolean {
    return this.isReleasing || this.hasBegunAnew;
  }

  get unackedCount(): number {
    return this.#unacked.length;
  }

  /** Nothing of it is on its way. */
  get isAtRest(): boolean {
    return this.unackedCount === 0 && !this.#isParking;
  }

  /** Whether the next event may be delivered. */
  hasRoom(nowMs: number): boolean {
    if (this.isWanted || this.isLetGo || this.#isParking || this.#awaitsRest || nowMs < this.pausedUntilMs)
      return false;
    const [oldest] = this.#unacked;
    if (!oldest) return true;
    return this.#unacked.length < this.#limits.window && this.attemptAt(oldest.point.seq) <= this.#attemptsTogether;
  }

  get #attemptsTogether(): number {
    return Math.min(ATTEMPTS_TOGETHER, this.#limits.maxAttempts - 1);
  }

  /** Whether enough may be delivered to read the log for it. */
  hasAmpleRoom(nowMs: number): boolean {
    return this.hasRoom(nowMs) && this.#unacked.length <= this.#limits.window * (1 - AMPLE_SHARE);
  }

  /** The attempt number of an event's next delivery; 1 for the first. */
  attemptAt(seq: bigint): number {
    const first = this.#deliveredBefore.findIndex((delivered) => delivered >= seq);
    return first === -1 ? 1 : 1 + this.#deliveredBefore.length - first;
  }

  /** What the next delivery of an event says of itself. */
  attributesAt(seq: bigint): DeliveryAttributes {
    return { lane: this.name, fence: this.held.fence, attempt: this.attemptAt(seq) };
  }

  /** Whether an event was delivered as often as it may be. */
  isSpent(seq: bigint): boolean {
    return this.attemptAt(seq) > this.#limits.maxAttempts;
  }

  /** Everything up to here was looked at; events of concern were delivered. Never goes back. */
  passTo(point: LogPoint): void {
    if (point.seq > this.#next.seq) this.#next = point;
  }

  /** An event was written to the client. */
  deliver(point: LogPoint, index: number, nowMs: number): void {
    this.passTo(point);
    this.#unacked.push({ point, index, atMs: nowMs });
    this.#unstoredDelivery = point.seq;
  }

  /** The events up to here are gone, and the client was told so: until it acks that, the lane stays where it was. */
  deliverLoss(point: LogPoint, index: number, nowMs: number): void {
    this.passTo(point);
    this.#unacked.push({ point, index, atMs: nowMs });
  }

  /** Nothing more is delivered until all is acked: something is not. */
  awaitRest(): void {
    this.#awaitsRest = true;
  }

  /** An event is being parked, at rest: nothing is delivered until `parked` or `notParked`. */
  beginParking(): void {
    this.#isParking = true;
  }

  /** The event at this point is out of the way, in the database too. */
  parked(point: LogPoint): void {
    this.#isParking = false;
    this.passTo(point);
    this.confirm(point);
  }

  /** It could not be parked: it is met again. */
  notParked(): void {
    this.#isParking = false;
  }

  /** Everything up to this point is confirmed in the database. Returns how many deliveries that were. */
  confirm(point: LogPoint): number {
    let count = 0;
    while (this.#unacked[0] && this.#unacked[0].point.seq <= point.seq) {
      this.#unacked.shift();
      count += 1;
    }
    if (this.#unacked.length === 0) this.#awaitsRest = false;
    if (point.seq > this.#ackedSeq) this.#ackedSeq = point.seq;
    if (point.seq > this.#storedSeq) this.#storedSeq = point.seq;
    this.passTo(point);
    return count;
  }

  /** What the database is to know of deliveries; each once. */
  takeDelivered(): bigint | undefined {
    const delivered = this.#unstoredDelivery;
    this.#unstoredDelivery = undefined;
    return delivered;
  }

  /** What was of no concern up to where it is, when nothing is unacked; each point once. */
  takeConfirmed(): LogPoint | undefined {
    if (!this.isAtRest || this.#next.seq <= this.#storedSeq) return undefined;
    this.#storedSeq = this.#next.seq;
    return this.#next;
  }

  /** A mark was not stored: it is given again. */
  restore(delivered: bigint | undefined, confirmed: LogPoint | undefined): void {
    if (delivered !== undefined) this.#unstoredDelivery ??= delivered;
    if (confirmed) this.#storedSeq = this.#ackedSeq;
  }
}
