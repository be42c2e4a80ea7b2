/** The tail of one stream: the only reader of its new events in this process, whoever follows. */

import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, pointOf, PositionExpired, type ReadLimits } from '#core/ports/event-log.ts';
import { isUnavailable, StatusError } from '#core/status-error.ts';
import { assertDense, LogHole } from '#functions/watch/tail/dense.ts';
import { type RecentBudget, RecentEvents, type Run } from '#functions/watch/tail/recent-events.ts';

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
  /** Of all tails. */
  readonly recent: RecentBudget;
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
  /** Who reads at a pace of its own, from what is recent or from the log. */
  readonly #pullers = new Set<Follower>();
  readonly #lifetime = new AbortController();
  #recent: RecentEvents | undefined;
  #last: LogPoint;
  #isReading = false;

  constructor(deps: TailDeps, stream: bigint, last: LogPoint) {
    this.#deps = deps;
    this.stream = stream;
    this.#last = last;
  }

  get isFollowed(): boolean {
    return this.#followers.size + this.#joining.size > 0;
  }

  /** Where it is: every event up to here has been delivered. */
  get last(): LogPoint {
    return this.#last;
  }

  /** The last events, kept while anyone pulls. */
  get recent(): Run {
    return this.#recent ?? { after: this.#last.seq, events: [] };
  }

  trim(nowMs: number): void {
    this.#recent?.trim(nowMs);
  }

  /** Tells the follower of what comes, from where the tail is, until it leaves; what was before it reads for itself. */
  pull(follower: Follower): void {
    this.#pullers.add(follower);
    this.#recent ??= new RecentEvents(this.#last.seq, this.#deps.recent);
    this.#followers.set(follower, this.#last);
    if (!this.#isReading) void this.#read();
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
        if (!newest) throw notYetReadable(this.stream, from);
        assertDense(this.stream, from, events);
        from = pointOf(newest);
        follower.onEvents(this.stream, events);
      }
      // Nothing is awaited between the last read and here: no event can slip in between.
      this.#followers.set(follower, from);
      if (!this.#isReading) void this.#read();
    } finally {
      this.#joining.delete(follower);
    }
  }

  leave(follower: Follower): void {
    this.#joining.delete(follower);
    this.#followers.delete(follower);
    this.#pullers.delete(follower);
    if (this.#pullers.size > 0) return;
    this.#recent?.forget();
    this.#recent = undefined;
  }

  /** Ends it for good. */
  stop(): void {
    this.#lifetime.abort();
  }

  async #read(): Promise<void> {
    const { signal } = this.#lifetime;
    this.#isReading = true;
    while (!signal.aborted) {
      try {
        for await (const events of this.#deps.log.tail(this.stream, this.#last, signal)) {
          if (signal.aborted) return;
          assertDense(this.stream, this.#last, events);
          this.#deliver(events);
        }
      } catch (error) {
        if (!signal.aborted) await this.#mend(error);
      }
    }
  }

  /** Followers keep what they have; what is lost to them they are told. */
  async #mend(error: unknown): Promise<void> {
    try {
      if (error instanceof PositionExpired) this.#goOnBehind(error.earliest, error);
      else if (error instanceof LogHole) await this.#startAnew(error);
      else throw error;
    } catch (unmended) {
      const isAway = isUnavailable(unmended);
      if (!isAway) this.#deps.onError(unmended);
      await new Promise((resolve) => setTimeout(resolve, isAway ? RETRY_MS : RETRY_BROKEN_MS));
    }
  }

  #deliver(events: readonly StreamEvent[]): void {
    const newest = events.at(-1);
    if (!newest) return;
    this.#last = pointOf(newest);
    this.#recent?.append(events, performance.now());
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
    this.#goOnBehind(range?.head ?? this.#last, hole);
    this.#deps.onError(hole);
  }

  /** @throws the error, when that is where the tail is: the log contradicts itself, and is asked again later. */
  #goOnBehind(point: LogPoint, error: unknown): void {
    if (point.seq <= this.#last.seq) throw error;
    this.#last = point;
    this.#recent?.restart(point.seq);
    for (const [follower, from] of this.#followers) {
      if (from.seq >= point.seq) continue;
      this.#followers.set(follower, point);
      follower.onGap(this.stream, point, error);
    }
  }
}

/** It was read before: the replica that answers now will have it in a moment. */
function notYetReadable(stream: bigint, { seq }: LogPoint): StatusError {
  return new StatusError('ServiceUnavailable', `stream ${stream} cannot be read behind seq ${seq} now; try again`, {
    details: { retryAfterSeconds: 1 },
  });
}
