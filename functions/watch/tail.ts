/**
 * The tail of one stream: the only reader of new events in this process, whoever follows. It keeps the last events, so
 * that who joins a little behind needs no read of its own.
 */

import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, PositionExpired, type ReadLimits } from '#core/ports/event-log.ts';

export interface Follower {
  /** New events of the stream, in order, without a gap. */
  onEvents(stream: bigint, events: readonly StreamEvent[]): void;
  /** Events behind the last ones were removed before they could be read. */
  onExpired(stream: bigint, error: PositionExpired): void;
}

const READ: ReadLimits = { maxCount: 500, maxBytes: 2 * 1024 * 1024 };
const KEPT_EVENTS = 512;
const RETRY_MS = 250;

export class Tail {
  readonly stream: bigint;
  readonly #log: EventLog;
  readonly #followers = new Map<Follower, LogPoint>();
  #last: LogPoint;
  #kept: StreamEvent[] = [];
  #reading = false;
  #again = false;

  constructor(log: EventLog, stream: bigint, last: LogPoint) {
    this.#log = log;
    this.stream = stream;
    this.#last = last;
  }

  get last(): LogPoint {
    return this.#last;
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  /** Delivers everything after the point to the follower, from now on. */
  async follow(follower: Follower, after: LogPoint): Promise<void> {
    let from = after;
    while (from.seq < this.#last.seq && !this.#keepsAllAfter(from)) {
      const { events } = await this.#log.read(this.stream, from, READ);
      follower.onEvents(this.stream, events);
      from = pointOf(events.at(-1)) ?? from;
    }
    // Nothing is awaited from here on: no event can slip in between.
    const missed = this.#kept.filter((event) => event.seq > from.seq);
    if (missed.length > 0) follower.onEvents(this.stream, missed);
    this.#followers.set(follower, pointOf(missed.at(-1)) ?? from);
    this.wake();
  }

  leave(follower: Follower): void {
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
      } while (this.#again && this.isFollowed);
    } catch (error) {
      if (error instanceof PositionExpired) this.#expire(error);
      // The log is away: followers keep what they have, and the floor of onAppend wakes this tail again at the latest.
      else setTimeout(() => this.wake(), RETRY_MS);
    } finally {
      this.#reading = false;
    }
  }

  async #readToEnd(): Promise<void> {
    while (this.isFollowed) {
      const { events, more } = await this.#log.read(this.stream, this.#last, READ);
      this.#deliver(events);
      if (!more) return;
    }
  }

  #deliver(events: readonly StreamEvent[]): void {
    for (const [index, event] of events.entries()) {
      if (event.seq !== this.#last.seq + BigInt(index) + 1n) {
        throw new Error(
          `stream ${this.stream}: seq ${event.seq} was read behind ${this.#last.seq}; the log has a hole`,
        );
      }
    }
    this.#last = pointOf(events.at(-1)) ?? this.#last;
    this.#kept = [...this.#kept, ...events].slice(-KEPT_EVENTS);
    for (const [follower, from] of this.#followers) {
      // A follower can be ahead: its list read the head before this tail did.
      const fresh = from.seq >= this.#last.seq ? [] : events.filter((event) => event.seq > from.seq);
      if (fresh.length === 0) continue;
      this.#followers.set(follower, this.#last);
      follower.onEvents(this.stream, fresh);
    }
  }

  #expire(error: PositionExpired): void {
    this.#last = error.earliest;
    this.#kept = [];
    for (const follower of this.#followers.keys()) follower.onExpired(this.stream, error);
  }

  #keepsAllAfter(point: LogPoint): boolean {
    const first = this.#kept[0];
    return first !== undefined && first.seq <= point.seq + 1n;
  }
}

function pointOf(event: StreamEvent | undefined): LogPoint | undefined {
  return event && { seq: event.seq, position: event.position };
}
