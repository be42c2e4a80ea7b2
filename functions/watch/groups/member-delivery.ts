/**
 * What one member is delivered: events of the lanes that it holds and parked events that were asked for again, as fast
 * as the client takes and acks them.
 */

import type { EventType, StreamEvent } from '#core/event.ts';
import { seesTenant } from '#core/identity.ts';
import type { LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { AssignedLane, DeadLetter, HeldLane } from '#core/ports/watch-groups.ts';
import { StatusError } from '#core/status-error.ts';
import type { GroupSessionDeps } from '#functions/watch/groups/keeper.ts';
import type { Lane } from '#functions/watch/groups/lane.ts';
import { MemberLanes } from '#functions/watch/groups/member-lanes.ts';
import type { MemberWriter } from '#functions/watch/groups/member-writer.ts';
import { parkedEvent } from '#functions/watch/groups/parked-event.ts';
import { StreamReading, type StreamReadingDeps } from '#functions/watch/groups/stream-reading.ts';

export interface MemberDeliveryDeps extends Pick<GroupSessionDeps, 'keeper' | 'selection' | 'limits' | 'tenants'> {
  readonly writer: MemberWriter;
  /** Sends what was written, or ends the member, if it may not be sent any more. */
  flush(): void;
  /** What ends the member. */
  onFailure(error: unknown): void;
}

/** Over all lanes, a member is sent at most this many windows of unacked events. */
const WINDOWS_PER_MEMBER = 64;

export class MemberDelivery {
  readonly lanes: MemberLanes;
  readonly #deps: MemberDeliveryDeps;
  /** There may be something to deliver. */
  readonly #due = new Set<StreamReading>();
  /** Parked events that are asked for again, by id. */
  readonly #letters = new Map<bigint, { readonly lane: Lane; readonly letter: DeadLetter }>();
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
    this.#letters.clear();
    for (const each of assigned) {
      const lane = each.retries.length > 0 ? this.lanes.find(each) : undefined;
      if (!lane) continue;
      for (const letter of each.retries) {
        if (lane.isNewLetter(letter.id)) this.#letters.set(letter.id, { lane, letter });
      }
    }
    this.pumpAll();
  }

  confirm(held: HeldLane, point: LogPoint): void {
    const lane = this.lanes.find(held);
    if (lane && this.lanes.confirm(lane, point)) this.#pumpAlso(this.lanes.reading(held));
  }

  letterDone(id: bigint): void {
    this.#letters.delete(id);
    if (this.lanes.letterDone(id)) this.pumpAll();
  }

  /** Delivers what can be delivered, when it is this member's turn. */
  pump(): void {
    if (!this.#isStopped) this.#deps.keeper.turns.take(this.#turn);
  }

  readonly #turn = (): void => {
    if (this.#isPumping || this.#isStopped) return;
    this.#isPumping = true;
    try {
      this.#deliverLetters();
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
    if (this.#deps.keeper.turns.isOver && this.#due.size + this.#letters.size > 0) this.pump();
  };

  /** The same, whatever lanes may have something. */
  pumpAll(): void {
    for (const reading of this.lanes.readings) this.#due.add(reading);
    this.pump();
  }

  get #isFull(): boolean {
    if (this.#isStopped || this.#deps.writer.isFull || this.#deps.keeper.turns.isOver) return true;
    return this.lanes.unackedCount >= this.#deps.limits.window * WINDOWS_PER_MEMBER;
  }

  #pumpAlso(reading: StreamReading | undefined): void {
    if (reading) this.#due.add(reading);
    this.pump();
  }

  #deliver(lane: Lane, event: StreamEvent, type: EventType): void {
    this.#assertIsolated(lane, event);
    if (lane.isSpent(event.seq)) {
      this.#park(lane, event, type);
      return;
    }
    if (lane.attemptAt(event.seq) > 1) this.#deps.keeper.onRedelivery();
    this.#deps.writer.event(lane, event, type);
    this.lanes.delivered(lane);
  }

  #park(lane: Lane, event: StreamEvent, type: EventType): void {
    if (lane.hasUnacked) {
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
      this.#deps.writer.letter(lane, letter);
      this.lanes.delivered(lane);
      this.#deps.flush();
    }
  }

  /** The last wall between tenants. */
  #assertIsolated(lane: Lane, { stream, subject: { tenant } }: StreamEvent): void {
    if (tenant === lane.tenant && seesTenant({ tenants: this.#deps.tenants }, tenant)) return;
    this.#deps.keeper.onIsolationViolation(stream);
    throw new StatusError('InternalError', 'the stream was ended for safety; connect again');
  }
}
