/** The lanes that one member holds, by stream, and which of them there is something to do for. */

import type { LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { AssignedLane, HeldLane, LaneRef } from '#core/ports/watch-groups.ts';
import { type Delivery, Lane, type LaneLimits } from '#functions/watch/groups/member/lane.ts';
import { MemberDeadLetters } from '#functions/watch/groups/member/member-dead-letters.ts';
import { MemberMarks } from '#functions/watch/groups/member/member-marks.ts';
import type { StreamReading } from '#functions/watch/groups/member/stream-reading.ts';

export type OpenReading = (stream: bigint, tenant: string, range: LogRange) => StreamReading;

export class MemberLanes {
  readonly deadLetters: MemberDeadLetters = new MemberDeadLetters();
  readonly #limits: LaneLimits;
  readonly #open: OpenReading;
  readonly #readings = new Map<bigint, StreamReading>();
  readonly marks: MemberMarks = new MemberMarks(this.#readings);
  /** Something is unacked. */
  readonly #busy = new Set<Lane>();
  readonly #wanted = new Set<Lane>();
  #unackedCount = 0;
  #wakeAtMs = Infinity;

  constructor(limits: LaneLimits, open: OpenReading) {
    this.#limits = limits;
    this.#open = open;
  }

  get readings(): Iterable<StreamReading> {
    return this.#readings.values();
  }

  get unackedCount(): number {
    return this.#unackedCount + this.deadLetters.sentCount;
  }

  /** The lane, while it is held with this fence. */
  find({ stream, lane, fence }: HeldLane): Lane | undefined {
    const found = this.at({ stream, lane });
    return found?.held.fence === fence ? found : undefined;
  }

  /** The lane, with whatever fence it is held. */
  at({ stream, lane }: Omit<LaneRef, 'group'>): Lane | undefined {
    return this.#readings.get(stream)?.lanes.get(lane);
  }

  reading({ stream }: Pick<LaneRef, 'stream'>): StreamReading | undefined {
    return this.#readings.get(stream);
  }

  /** Whether the log's range is needed to take the lane. */
  needsRange({ stream }: AssignedLane): boolean {
    return !this.#readings.has(stream);
  }

  /** Lets go of what is not assigned any more, or has begun anew. Returns the streams of which nothing is left that was not handed over. */
  drop(assigned: readonly AssignedLane[]): readonly StreamReading[] {
    const kept = new Set(assigned.map(({ stream, lane, fence }) => `${stream}.${lane}.${fence}`));
    const streams = new Set(assigned.map(({ stream }) => stream));
    const lost: StreamReading[] = [];
    for (const reading of this.#readings.values()) {
      let isHandedOver = false;
      for (const lane of reading.lanes.values()) {
        if (kept.has(`${lane.name}.${lane.held.fence}`)) continue;
        isHandedOver ||= lane.isLetGo || lane.isWanted;
        reading.lanes.delete(lane.held.lane);
        this.#forget(lane);
      }
      if (reading.lanes.size > 0 || streams.has(reading.stream)) continue;
      this.#readings.delete(reading.stream);
      reading.stop();
      if (!isHandedOver) lost.push(reading);
    }
    return lost;
  }

  /** Takes what is assigned and not held yet; of what is held, what others want of it. Those whose range is not known are left out. */
  take(assigned: readonly AssignedLane[], ranges: ReadonlyMap<bigint, LogRange>, nowMs: number): void {
    for (const each of assigned) {
      const lane = this.find(each) ?? this.#begin(each, ranges.get(each.stream), nowMs);
      if (!lane) continue;
      lane.isReleasing = false;
      lane.isWanted = each.isWanted;
      if (each.isWanted) this.#wanted.add(lane);
      else this.#wanted.delete(lane);
      this.confirm(lane, each.confirmed);
    }
    this.deadLetters.take(assigned);
  }

  #begin(assigned: AssignedLane, range: LogRange | undefined, nowMs: number): Lane | undefined {
    let reading = this.#readings.get(assigned.stream);
    if (!reading) {
      if (!range) return undefined;
      reading = this.#open(assigned.stream, assigned.tenant, range);
      this.#readings.set(assigned.stream, reading);
    }
    const lane = new Lane(assigned, this.#limits, nowMs);
    reading.lanes.set(assigned.lane, lane);
    reading.hasMoved = true;
    if (assigned.pauseMs > 0) this.#wakeAtMs = Math.min(this.#wakeAtMs, nowMs + assigned.pauseMs);
    return lane;
  }

  /** Something was delivered on it. */
  delivered(lane: Lane): void {
    this.#busy.add(lane);
    this.marks.delivered(lane);
    this.#unackedCount += 1;
  }

  /** Returns whether there is room now that was not there before. */
  confirm(lane: Lane, point: LogPoint): boolean {
    const count = lane.confirm(point);
    this.#unackedCount -= count;
    if (lane.unackedCount === 0) this.#busy.delete(lane);
    return count > 0;
  }

  /** It has begun anew: nothing more is delivered on it until it is known how. */
  begunAnew(held: HeldLane): void {
    const lane = this.find(held);
    if (lane) lane.hasBegunAnew = true;
  }

  /** What was delivered on lanes before this moment and is not acked. */
  awaited(beforeMs: number): readonly HeldLane[] {
    return [...this.#busy].filter((lane) => (lane.oldestUnacked?.atMs ?? Infinity) <= beforeMs).map(({ held }) => held);
  }

  /** Of all lanes, and dead letters. */
  oldestUnacked(): Delivery | undefined {
    let { oldest } = this.deadLetters;
    for (const lane of this.#busy) {
      const candidate = lane.oldestUnacked;
      if (candidate && (!oldest || candidate.index < oldest.index)) oldest = candidate;
    }
    return oldest;
  }

  /** Lanes that others wait for and that nothing keeps here any more; each once. */
  takeRested(): readonly HeldLane[] {
    const rested = [...this.#wanted].filter(
      (lane) => lane.isAtRest && !lane.isLetGo && !this.deadLetters.isOn(lane.name),
    );
    for (const lane of rested) lane.isReleasing = true;
    return rested.map(({ held }) => held);
  }

  /** Whether the pause of a lane has ended since this was last asked. */
  takeWake(nowMs: number): boolean {
    if (nowMs < this.#wakeAtMs) return false;
    // Another lane's pause may be longer: it is found at the next look.
    this.#wakeAtMs = Math.min(Infinity, ...this.#pausesAfter(nowMs));
    return true;
  }

  *#pausesAfter(nowMs: number): Iterable<number> {
    for (const { lanes } of this.#readings.values()) {
      for (const { pausedUntilMs } of lanes.values()) if (pausedUntilMs > nowMs) yield pausedUntilMs;
    }
  }

  #forget(lane: Lane): void {
    this.#unackedCount -= lane.unackedCount;
    this.#busy.delete(lane);
    this.marks.forget(lane);
    this.#wanted.delete(lane);
  }

  stop(): void {
    for (const reading of this.#readings.values()) reading.stop();
    this.#readings.clear();
    for (const each of [this.#busy, this.#wanted, this.marks]) each.clear();
    this.#unackedCount = 0;
    this.deadLetters.clear();
  }
}
