/**
 * What one member is delivered: events of the lanes that it holds and dead letters that were asked for again, as fast
 * as the client takes and acks them.
 */

import type { EventType, StreamEvent } from '#core/event.ts';
import { seesTenant } from '#core/identity.ts';
import type { LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { AssignedLane, DeadLetter, HeldLane, Retry } from '#core/ports/watch-groups.ts';
import { StatusError } from '#core/status-error.ts';
import type { GroupSessionDeps } from '#functions/watch/groups/keeper.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';
import { MemberLanes } from '#functions/watch/groups/member/member-lanes.ts';
import type { MemberWriter } from '#functions/watch/groups/member/member-writer.ts';
import { parkingOf } from '#functions/watch/groups/member/parking.ts';
import { StreamReading, type StreamReadingDeps } from '#functions/watch/groups/member/stream-reading.ts';
import type { Worker } from '#functions/watch/pacing/turns.ts';

export interface MemberDeliveryDeps extends Pick<
  GroupSessionDeps,
  'keeper' | 'membership' | 'selection' | 'limits' | 'tenants'
> {
  readonly writer: MemberWriter;
  /** Sends what was written, or ends the member, if it may not be sent any more. */
  flush(): void;
  /** What ends the member. */
  onFailure(error: unknown): void;
}

/** Over all lanes, a member is sent at most this many windows of unacked events. */
const WINDOWS_PER_MEMBER = 64;
/** Dead letters that are asked for at once. */
const MAX_ASKED = 100;

export class MemberDelivery implements Worker {
  readonly lanes: MemberLanes;
  readonly #deps: MemberDeliveryDeps;
  /** There may be something to deliver. */
  readonly #due = new Set<StreamReading>();
  /** Dead letters are on their way from the database: they go ahead of all that could be delivered meanwhile. */
  #isAsking = false;
  #isPumping = false;
  #isStopped = false;

  constructor(deps: MemberDeliveryDeps) {
    const { keeper, limits, selection } = deps;
    this.#deps = deps;
    const readingDeps: StreamReadingDeps = {
      log: keeper.log,
      tails: keeper.tails,
      slots: keeper.slots,
      selection,
      isFull: () => this.#isFull,
      deliver: (lane, event, type) => this.#deliver(lane, event, type),
      onNews: (reading) => this.#pumpAlso(reading),
      onHeld: (reading) => keeper.heldRuns.hold(reading),
      onDropped: (reading) => keeper.heldRuns.drop(reading),
      onLost: (lane, point) => {
        deps.writer.loss(lane, point);
        this.lanes.delivered(lane);
      },
      onError: (error) => keeper.onError(error),
      onFailure: (error) => deps.onFailure(error),
    };
    this.lanes = new MemberLanes(limits, (...stream) => new StreamReading(readingDeps, ...stream));
  }

  stop(): void {
    this.#isStopped = true;
    this.lanes.stop();
  }

  /** Takes lanes; those that it does not hold any more were dropped before. */
  take(assigned: readonly AssignedLane[], ranges: ReadonlyMap<bigint, LogRange>): void {
    this.lanes.take(assigned, ranges, performance.now());
    this.pumpAll();
  }

  confirm(held: HeldLane, point: LogPoint): void {
    const lane = this.lanes.find(held);
    if (lane && this.lanes.confirm(lane, point)) this.#pumpAlso(this.lanes.reading(held));
  }

  deadLetterDone(delivered: Retry): void {
    if (this.lanes.deadLetters.done(delivered)) this.pumpAll();
  }

  /** Delivers what can be delivered, when it is this member's turn. */
  pump(): void {
    if (!this.#isStopped) this.#deps.keeper.turns.take(this);
  }

  turn(): void {
    if (this.#isPumping || this.#isStopped) return;
    this.#isPumping = true;
    try {
      this.#askDeadLetters();
      for (const reading of this.#due) {
        if (this.#isFull) break;
        this.#due.delete(reading);
        const wasFull = reading.advance(performance.now());
        this.#deps.flush();
        // Behind the others.
        if (wasFull) this.#due.add(reading);
      }
      this.#deps.flush();
    } catch (error) {
      this.#deps.onFailure(error);
    } finally {
      this.#isPumping = false;
    }
    if (this.#deps.keeper.turns.isOver && this.#due.size > 0) this.pump();
  }

  /** The same, whatever lanes may have something. */
  pumpAll(): void {
    for (const reading of this.lanes.readings) this.#due.add(reading);
    this.pump();
  }

  get #isFull(): boolean {
    if (this.#isStopped || this.#isAsking || this.#deps.keeper.turns.isOver) return true;
    return this.#deps.writer.isFull || this.#room <= 0;
  }

  /** How much more the client may be sent before it acks. */
  get #room(): number {
    return this.#deps.limits.window * WINDOWS_PER_MEMBER - this.lanes.unackedCount;
  }

  #pumpAlso(reading: StreamReading | undefined): void {
    if (reading) this.#due.add(reading);
    this.pump();
  }

  #deliver(lane: Lane, event: StreamEvent, type: EventType): void {
    this.#assertIsolated(lane, event.subject.tenant);
    if (lane.isSpent(event.seq)) {
      this.#park(lane, event, type);
      return;
    }
    if (lane.attemptAt(event.seq) > 1) this.#deps.keeper.onRedelivery();
    this.#deps.writer.event(lane, event, type);
    this.lanes.delivered(lane);
  }

  #park(lane: Lane, event: StreamEvent, type: EventType): void {
    if (lane.unackedCount > 0) {
      lane.awaitRest();
      return;
    }
    lane.beginParking();
    const parking = parkingOf(lane, event, type);
    void this.#deps.keeper.park(lane, parking).then(() => this.#pumpAlso(this.lanes.reading(lane.held)));
  }

  #askDeadLetters(): void {
    if (this.#isFull) return;
    const due = this.lanes.deadLetters.due(Math.min(this.#room, MAX_ASKED));
    if (due.length === 0) return;
    this.#isAsking = true;
    void this.#deliverDeadLetters(due);
  }

  async #deliverDeadLetters(due: readonly Retry[]): Promise<void> {
    const { keeper, membership } = this.#deps;
    const deadLetters = await keeper.deadLetters(membership, due);
    this.#isAsking = false;
    if (this.#isStopped) return;
    if (deadLetters) {
      this.lanes.deadLetters.looked(due, deadLetters.at(-1)?.id);
      try {
        for (const each of deadLetters) this.#deliverDeadLetter(each);
      } catch (error) {
        this.#deps.onFailure(error);
      }
    }
    this.pump();
  }

  /** One whose lane has other things before it by now comes again: with the lane, here or elsewhere. */
  #deliverDeadLetter(deadLetter: DeadLetter): void {
    const lane = this.lanes.at(deadLetter);
    if (!lane || lane.isWanted || lane.isLetGo) return;
    this.#assertIsolated(lane, deadLetter.tenant);
    this.#deps.keeper.onRedelivery();
    const delivery = this.#deps.writer.deadLetter(lane, deadLetter);
    this.lanes.deadLetters.sent(deadLetter.id, { ...delivery, lane: lane.name, fence: deadLetter.fence });
    this.#deps.flush();
  }

  /** The last wall between tenants. */
  #assertIsolated(lane: Lane, tenant: string): void {
    if (tenant === lane.tenant && seesTenant({ tenants: this.#deps.tenants }, tenant)) return;
    this.#deps.keeper.onIsolationViolation(lane.held.stream);
    throw new StatusError('InternalError', 'the stream was ended for safety; connect again');
  }
}
