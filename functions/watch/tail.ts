/** The tail of one stream: the only reader of its new events in this process, whoever follows. */

import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, pointOf, PositionExpired, type ReadLimits } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import { assertDense, LogHole } from '#functions/watch/dense.ts';

export interface Follower {
  /** New events of the stream, in order, without a gap. At least one. */
  onEvents(stream: bigint, events: readonly StreamEvent[]): void;
  /** What comes next is behind this point; events before it could not be delivered. */
  onGap(stream: bigint, point: LogPoint, error: unknown): void;
}

export interface TailDeps {
  readonly log: EventLog;
  /** Told of what must never happen; that the log is away is none of it. */
  readonly onError: (error: unknown) => void;
}

const READ: ReadLimits = { maxCount: 500, maxBytes: 2 * 1024 * 1024 };
const RETRY_MS = 250;
/** After an error that waiting does not mend; each is logged. */
const RETRY_BROKEN_MS = 2_000;

export class Tail {
  readonly stream: bigint;
  readonly #deps: TailDeps;
  /** Where each is; a follower can be ahead of the tail. */
  readonly #followers = new Map<Follower, LogPoint>();
  /** Who still reads up to the tail. */
  readonly #joining = new Set<Follower>();
  #last: LogPoint;
  #reading = false;
  #again = false;

  constructor(deps: TailDeps, stream: bigint, last: LogPoint) {
    this.#deps = deps;
    this.stream = stream;
    this.#last = last;
  }

  get last(): LogPoint {
    return this.#last;
  }

  get isFollowed(): boolean {
    return this.#followers.size + this.#joining.size > 0;
  }

  /** Delivers everything after the point to the follower, from now on, until it leaves. */
  async follow(follower: Follower, after: LogPoint): Promise<void> {
    this.#joining.add(follower);
    try {
      let from = after;
      while (from.seq < this.#last.seq) {
        const { events } = await this.#deps.log.read(this.stream, from, READ);
        if (!this.#joining.has(follower)) return;
        const newest = events.at(-1);
        if (!newest) throw new LogHole(`stream ${this.stream}: nothing is read behind seq ${from.seq}`);
        assertDense(this.stream, from, events);
        from = pointOf(newest);
        follower.onEvents(this.stream, events);
      }
      // Nothing is awaited between the last read and here: no event can slip in between.
      this.#followers.set(follower, from);
      this.wake();
    } finally {
      this.#joining.delete(follower);
    }
  }

  leave(follower: Follower): void {
    this.#joining.delete(follower);
    this.#followers.delete(follower);
  }

  /** Reads what is new, now or behind the read in flight. */
  wake(): void {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    void this.#readNew();
  }

  async #readNew(): Promise<void> {
    try {
      do {
        this.#again = false;
        await this.#readToEnd();
      } while (this.#again && this.#followers.size > 0);
    } catch (error) {
      this.#retry(error);
    } finally {
      this.#reading = false;
    }
  }

  /** Followers keep what they have; the floor of onAppend wakes this tail again at the latest. */
  #retry(error: unknown): void {
    const isAway = error instanceof StatusError && error.reason === 'ServiceUnavailable';
    if (!isAway) this.#deps.onError(error);
    setTimeout(() => this.wake(), isAway ? RETRY_MS : RETRY_BROKEN_MS);
  }

  async #readToEnd(): Promise<void> {
    while (this.#followers.size > 0) {
      try {
        const { events, more } = await this.#deps.log.read(this.stream, this.#last, READ);
        assertDense(this.stream, this.#last, events);
        this.#deliver(events);
        if (!more) return;
      } catch (error) {
        if (error instanceof PositionExpired) this.#goOnBehind(error.earliest, error);
        else if (error instanceof LogHole) await this.#startAnew(error);
        else throw error;
      }
    }
  }

  #deliver(events: readonly StreamEvent[]): void {
    const newest = events.at(-1);
    if (!newest) return;
    this.#last = pointOf(newest);
    for (const [follower, from] of this.#followers) {
      const fresh = events.filter((event) => event.seq > from.seq);
      if (fresh.length === 0) continue;
      this.#followers.set(follower, this.#last);
      try {
        follower.onEvents(this.stream, fresh);
      } catch (error) {
        // The others still get theirs.
        this.#deps.onError(error);
        follower.onGap(this.stream, this.#last, error);
      }
    }
  }

  async #startAnew(hole: LogHole): Promise<void> {
    const range = (await this.#deps.log.ranges([this.stream])).get(this.stream);
    if (!range || range.head.seq <= this.#last.seq) throw hole;
    this.#deps.onError(hole);
    this.#goOnBehind(range.head, hole);
  }

  #goOnBehind(point: LogPoint, error: unknown): void {
    this.#last = point;
    for (const [follower, from] of this.#followers) {
      if (from.seq >= point.seq) continue;
      this.#followers.set(follower, point);
      follower.onGap(this.stream, point, error);
    }
  }
}
