/**
 * One member's reading of one stream. What is new comes from the stream's tail, which all share; lanes that are a little
 * behind find their events among its recent ones; those further behind share one bounded read of the log at a time.
 */

import type { StreamEvent } from '#core/event.ts';
import {
  type EventLog,
  type LogPoint,
  type LogRange,
  PositionExpired,
  type ReadLimits,
  type ReadResult,
} from '#core/ports/event-log.ts';
import { isUnavailable } from '#core/status-error.ts';
import { pause } from '#loop/pause.ts';
import { LogHole } from '#functions/watch/tail/dense.ts';
import type { Run } from '#functions/watch/tail/recent-events.ts';
import type { Follower, Tail } from '#functions/watch/tail/tail.ts';
import type { Tails } from '#functions/watch/tail/tails.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';
import { pass, type PassDeps } from '#functions/watch/groups/member/pass.ts';
import type { Slots } from '#functions/watch/pacing/slots.ts';

export interface StreamReadingDeps extends PassDeps {
  readonly log: EventLog;
  readonly tails: Tails;
  readonly slots: Slots;
  /** There may be more to deliver. */
  onNews(reading: StreamReading): void;
  /** Events were read that not all lanes had room for: they are held until then, or until `forget`. */
  onHeld(reading: StreamReading): void;
  onDropped(reading: StreamReading): void;
  /** Of this lane, the events up to the point are not kept any more. */
  onLost(lane: Lane, point: LogPoint): void;
  /** What must never happen. */
  onError(error: unknown): void;
  /** What ends the member. */
  onFailure(error: unknown): void;
}

const READ: ReadLimits = { maxCount: 250, maxBytes: 256 * 1024 };
const RETRY_MS = 500;

export class StreamReading implements Follower {
  readonly stream: bigint;
  readonly tenant: string;
  /** Those that the member holds. */
  readonly lanes: Map<number, Lane> = new Map();
  /** Lanes have moved since this was last set to false. */
  hasMoved = true;
  readonly #deps: StreamReadingDeps;
  readonly #tail: Tail;
  #held: Run | undefined;
  #isReading = false;
  readonly #lifetime = new AbortController();

  constructor(deps: StreamReadingDeps, stream: bigint, tenant: string, { head }: LogRange) {
    this.#deps = deps;
    this.stream = stream;
    this.tenant = tenant;
    this.#tail = deps.tails.pull(this, stream, head);
  }

  /** Leaves the tail. */
  stop(): void {
    this.#lifetime.abort();
    this.#drop();
    this.#deps.tails.leave(this, this.stream);
  }

  /** Lets go of what was read; it is read again when it is needed. */
  forget(): void {
    this.#held = undefined;
  }

  #drop(): void {
    if (this.#held) this.#deps.onDropped(this);
    this.#held = undefined;
  }

  onEvents(): void {
    this.#deps.onNews(this);
  }

  /** Lanes that are not as far find out when they read. */
  onGap(): void {
    this.#deps.onNews(this);
  }

  /** Delivers what can be delivered now, and begins to read what is to be read. Whether the client was full before all was. */
  advance(nowMs: number): boolean {
    for (;;) {
      const waiting = this.#waiting(nowMs);
      const run = this.#runFor(waiting);
      if (!run) {
        if (waiting.length > 0) this.#readFor(waiting, nowMs);
        else this.#drop();
        return false;
      }
      if (this.#deps.isFull()) return true;
      pass(this.#deps, this.lanes, run, nowMs);
      this.hasMoved = true;
    }
  }

  /** The lanes that have room and are not as far as the tail. */
  #waiting(nowMs: number): readonly Lane[] {
    const { last } = this.#tail;
    return [...this.lanes.values()].filter((lane) => lane.next.seq < last.seq && lane.hasRoom(nowMs));
  }

  /** Events for one of these that are in memory. */
  #runFor(lanes: readonly Lane[]): Run | undefined {
    const { recent } = this.#tail;
    if (lanes.some(({ next }) => next.seq >= recent.after)) return recent;
    const held = this.#held;
    if (!held) return undefined;
    const end = held.after + BigInt(held.events.length);
    return lanes.some(({ next }) => next.seq >= held.after && next.seq < end) ? held : undefined;
  }

  #readFor(waiting: readonly Lane[], nowMs: number): void {
    if (this.#isReading || this.#lifetime.signal.aborted) return;
    const lanes = waiting.filter((lane) => lane.hasAmpleRoom(nowMs));
    const [first] = lanes.toSorted((a, b) => (a.next.seq < b.next.seq ? -1 : 1));
    if (!first) return;
    this.#isReading = true;
    void this.#read(first.next);
  }

  async #read(from: LogPoint): Promise<void> {
    let pauseMs = 0;
    try {
      const read = (): Promise<ReadResult> => this.#deps.log.read(this.stream, from, READ);
      const { events } = await this.#deps.slots.run(read, this.#lifetime.signal);
      if (!this.#take(from, events)) pauseMs = RETRY_MS;
    } catch (error) {
      if (error instanceof PositionExpired) pauseMs = this.#lose(error.earliest) ? 0 : RETRY_MS;
      else if (isUnavailable(error)) pauseMs = RETRY_MS;
      else if (!this.#lifetime.signal.aborted) this.#deps.onFailure(error);
    }
    if (pauseMs > 0) await pause(pauseMs, this.#lifetime.signal);
    this.#isReading = false;
    if (!this.#lifetime.signal.aborted) this.#deps.onNews(this);
  }

  /** Returns whether lanes can go on. */
  #take(from: LogPoint, events: readonly StreamEvent[]): boolean {
    if (this.#lifetime.signal.aborted) return false;
    const hole = events.findIndex(({ seq }, index) => seq !== from.seq + BigInt(index) + 1n);
    const [first] = events;
    if (hole === 0 && first) {
      this.#deps.onError(new LogHole(`stream ${this.stream}: seq ${from.seq + 1n} is missing; read was ${first.seq}`));
      return this.#lose({ seq: first.seq - 1n, position: first.position - 1n });
    }
    // What is behind a hole is read again, from its edge.
    this.#held = { after: from.seq, events: hole === -1 ? events : events.slice(0, hole) };
    this.#deps.onHeld(this);
    return events.length > 0;
  }

  /** Lanes go on behind this point. Returns whether any did. */
  #lose(point: LogPoint): boolean {
    if (this.#lifetime.signal.aborted) return false;
    const nowMs = performance.now();
    let hasMoved = false;
    for (const lane of this.lanes.values()) {
      if (lane.next.seq >= point.seq || !lane.hasRoom(nowMs)) continue;
      this.#deps.onLost(lane, point);
      hasMoved = true;
    }
    return hasMoved;
  }
}
