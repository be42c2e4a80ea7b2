/**
 * One member of a group: one client's stream. It delivers the events of the lanes that it holds, as fast as the client
 * takes and acks them. Whatever it delivers, it does while its lease lasts by its own clock: a process that was frozen
 * delivers nothing when it wakes up.
 */

import type { EventType, StreamEvent } from '#core/event.ts';
import { seesTenant } from '#core/identity.ts';
import type { LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { AssignedLane, DeadLetter, HeldLane, Membership } from '#core/ports/watch-groups.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import { errorFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import { AckClock } from '#functions/watch/groups/ack-clock.ts';
import { progressFrame } from '#functions/watch/groups/group-frames.ts';
import type { GroupSessionDeps } from '#functions/watch/groups/keeper.ts';
import type { Lane } from '#functions/watch/groups/lane.ts';
import { MemberLanes } from '#functions/watch/groups/member-lanes.ts';
import { MemberWriter } from '#functions/watch/groups/member-writer.ts';
import { parkedEvent } from '#functions/watch/groups/parked-event.ts';
import { Slots } from '#functions/watch/groups/slots.ts';
import { StreamReading, type StreamReadingDeps } from '#functions/watch/groups/stream-reading.ts';
import type { TimedStream, WatchEnd } from '#functions/watch/timed-stream.ts';
import { leaseLost, unackedTooLong } from '#functions/watch/watch-errors.ts';

/** Over all lanes, a member is sent at most this many windows of unacked events. */
const WINDOWS_PER_MEMBER = 64;
const MAX_READS = 16;
/** Streams of which events are held that their lanes have no room for. */
const MAX_HELD_RUNS = 16;

export class GroupSession implements TimedStream {
  readonly mode = 'group';
  readonly membership: Membership;
  readonly lanes: MemberLanes;
  readonly #deps: GroupSessionDeps;
  readonly #writer: MemberWriter;
  readonly #ackClock: AckClock;
  /** There may be something to deliver. */
  readonly #due = new Set<StreamReading>();
  readonly #holding = new Set<StreamReading>();
  /** Parked events that are asked for again, by id. */
  readonly #letters = new Map<bigint, { readonly lane: Lane; readonly letter: DeadLetter }>();
  #leaseEndsAtMs: number;
  #isPumping = false;
  #isClosed = false;
  #endedBy: WatchEnd | undefined;

  constructor(deps: GroupSessionDeps) {
    const { keeper, membership, limits, selection } = deps;
    this.#deps = deps;
    this.membership = membership;
    this.#leaseEndsAtMs = deps.leaseEndsAtMs;
    this.#writer = new MemberWriter(deps.sink, keeper.ackTokens, deps.audience);
    this.#ackClock = new AckClock(deps.ackWaitMs);
    const readingDeps: StreamReadingDeps = {
      log: keeper.log,
      tails: keeper.tails,
      slots: new Slots(MAX_READS),
      selection,
      isFull: () => this.#isFull,
      deliver: (lane, event, type) => this.#deliver(lane, event, type),
      onNews: (reading) => this.#pumpAlso(reading),
      onHeld: (reading) => this.#hold(reading),
      onLost: (lane, point) => {
        this.#writer.loss(lane, point);
        this.lanes.delivered(lane);
      },
      onError: (error) => keeper.onError(error),
      onFailure: (error) => this.#fail(error),
    };
    this.lanes = new MemberLanes(limits, (...stream) => new StreamReading(readingDeps, ...stream));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get endedBy(): WatchEnd | undefined {
    return this.#endedBy;
  }

  blockedMs(nowMs: number): number {
    return this.#writer.outlet.blockedMs(nowMs);
  }

  /** For what comes before the events. */
  write(text: string): void {
    this.#writer.now(text);
  }

  onDrain(): void {
    this.#writer.outlet.onDrain();
    this.pump();
  }

  bookmark(): void {
    if (!this.#isClosed && !this.#writer.outlet.isFull) this.#writer.now(progressFrame());
  }

  finish(): void {
    this.#close();
  }

  end(error: StatusError, endedBy: WatchEnd = 'error'): void {
    if (this.#isClosed) return;
    this.#endedBy = endedBy;
    this.#writer.now(errorFrame(error, { forget: false }));
    this.#close();
  }

  /** The connection is gone. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#writer.outlet.closed();
    this.#deps.keeper.ended(this.membership.member);
    this.lanes.stop();
  }

  /** Takes lanes; those that it does not hold any more were dropped before. */
  take(assigned: readonly AssignedLane[], ranges: ReadonlyMap<bigint, LogRange>): void {
    if (this.#isClosed) return;
    this.lanes.take(assigned, ranges, performance.now());
    this.#letters.clear();
    for (const each of assigned) {
      const lane = each.retries.length > 0 ? this.lanes.find(each) : undefined;
      for (const letter of lane ? each.retries : []) {
        if (lane?.isNewLetter(letter.id)) this.#letters.set(letter.id, { lane, letter });
      }
    }
    this.#pumpAll();
  }

  /** All events of a tenant that is gone were acked. */
  tellGone(tenant: string): void {
    if (!this.#isClosed) this.#writer.now(tenantGoneFrame(tenant, undefined));
  }

  /** Confirmed in the database, by whatever process. */
  confirm(held: HeldLane, point: LogPoint): void {
    const lane = this.lanes.find(held);
    if (lane && this.lanes.confirm(lane, point)) this.#pumpAlso(this.lanes.reading(held));
  }

  letterDone(id: bigint): void {
    this.#letters.delete(id);
    this.lanes.letterDone(id);
  }

  /** The membership lasts until then, by this process's clock. */
  renewed(leaseEndsAtMs: number): void {
    this.#leaseEndsAtMs = leaseEndsAtMs;
  }

  /** Looks at the clock: the lease, what lies unacked, pauses that end. */
  tick(nowMs: number): void {
    if (this.#isClosed) return;
    if (nowMs >= this.#leaseEndsAtMs) {
      this.end(leaseLost(), 'lease');
      return;
    }
    const clock = this.#ackClock.read(this.lanes.oldestUnacked(), nowMs);
    if (clock === 'over') this.end(unackedTooLong(this.#deps.ackWaitMs), 'ack');
    else if (clock === 'look') this.#deps.keeper.reload(this.membership.group);
    if (this.lanes.takeWake(nowMs)) this.#pumpAll();
  }

  /** Delivers what can be delivered. */
  pump(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    try {
      this.#deliverLetters();
      for (const reading of this.#due) {
        if (this.#isFull) break;
        this.#due.delete(reading);
        const wasFull = reading.advance(performance.now());
        this.#flush();
        // Behind the others.
        if (wasFull) this.#due.add(reading);
      }
      this.#flush();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isPumping = false;
    }
  }

  get #isFull(): boolean {
    if (this.#isClosed || this.#writer.isFull) return true;
    return this.lanes.unackedCount >= this.#deps.limits.window * WINDOWS_PER_MEMBER;
  }

  #pumpAlso(reading: StreamReading | undefined): void {
    if (reading) this.#due.add(reading);
    this.pump();
  }

  #pumpAll(): void {
    for (const reading of this.lanes.readings) this.#due.add(reading);
    this.pump();
  }

  #flush(): void {
    if (!this.#isClosed && !this.#writer.flush(this.#leaseEndsAtMs)) this.end(leaseLost(), 'lease');
  }

  #deliver(lane: Lane, event: StreamEvent, type: EventType): void {
    this.#assertIsolated(lane, event);
    if (lane.isSpent(event.seq)) {
      this.#park(lane, event, type);
      return;
    }
    if (lane.attemptAt(event.seq) > 1) this.#deps.keeper.onRedelivery();
    this.#writer.event(lane, event, type);
    this.lanes.delivered(lane);
  }

  #park(lane: Lane, event: StreamEvent, type: EventType): void {
    if (!lane.isAtRest) {
      lane.awaitRest();
      return;
    }
    lane.beginParking();
    const letter = parkedEvent(lane, event, type);
    void this.#deps.keeper.park(lane, letter).then(() => this.#pumpAlso(this.lanes.reading(lane.held)));
  }

  #deliverLetters(): void {
    for (const [id, { lane, letter }] of this.#letters) {
      if (this.#isFull) return;
      this.#letters.delete(id);
      this.#writer.letter(lane, letter);
      this.lanes.delivered(lane);
      this.#flush();
    }
  }

  /** The last wall between tenants. */
  #assertIsolated(lane: Lane, { stream, subject: { tenant } }: StreamEvent): void {
    if (tenant === lane.tenant && seesTenant({ tenants: this.#deps.tenants }, tenant)) return;
    this.#deps.keeper.onIsolationViolation(stream);
    throw new StatusError('InternalError', 'the stream was ended for safety; connect again');
  }

  #hold(reading: StreamReading): void {
    this.#holding.delete(reading);
    this.#holding.add(reading);
    const [longest] = this.#holding;
    if (!longest || this.#holding.size <= MAX_HELD_RUNS) return;
    longest.forget();
    this.#holding.delete(longest);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#writer.outlet.end();
    this.closed();
  }

  #fail(error: unknown): void {
    if (!(error instanceof StatusError)) this.#deps.keeper.onError(error);
    this.end(toStatusError(error));
  }
}
