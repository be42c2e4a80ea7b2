/**
 * One client's watch: a place in its feed, pulled as fast as the client takes it. Behind the ring it reads the log until
 * it catches up. It delivers each event of a stream once, in order, and never an older one after a newer one.
 */

import type { CursorVector } from '#core/cursor.ts';
import type { SseSink } from '#core/ports/sse.ts';
import type { StatusError } from '#core/status-error.ts';
import { type Backlog, catchUp, type CatchUpDeps } from '#functions/watch/backlog/catch-up.ts';
import type { Feed, FeedWatcher } from '#functions/watch/feed/feed.ts';
import type { Filter } from '#functions/watch/filter/compile.ts';
import { bookmarkFrame, errorFrame, FrameBytes } from '#functions/watch/frames.ts';
import type { SentRange } from '#functions/watch/feed/range-bytes.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { Outlet } from '#functions/watch/outlet.ts';
import type { Worker } from '#functions/watch/pacing/turns.ts';
import type { TimedStream } from '#functions/watch/timed-stream.ts';
import { furthest, isAhead } from '#functions/watch/vectors.ts';
import { fateOfLastId } from '#functions/watch/watch-errors.ts';

const MAX_WRITE_BYTES = 256 * 1024;

export interface WatcherDeps {
  readonly feed: Feed;
  readonly backlog: Backlog;
  readonly sink: SseSink;
  readonly selection: Selection;
  /** The tenants were named one by one: with the last of them the watch ends. */
  readonly endsWithTenants: boolean;
}

/** A class, for its memory: an idle watcher is one of thousands. */
export class Watcher implements FeedWatcher, TimedStream, Worker {
  readonly #feed: Feed;
  readonly #backlog: Backlog;
  readonly #outlet: Outlet;
  readonly #selection: Selection;
  readonly #endsWithTenants: boolean;
  #endedBy: 'error' | 'tenant' | undefined;
  #state: 'starting' | 'behind' | 'live' | 'closed' = 'starting';
  /** Everything up to here is written. */
  #vector: CursorVector = new Map();
  /** Index in the ring of what comes next, while live. */
  #next = 0;
  /** Where this watcher is ahead of its feed: those entries are not for it. */
  #ahead: CursorVector | undefined;

  constructor({ feed, backlog, sink, selection, endsWithTenants }: WatcherDeps) {
    this.#feed = feed;
    this.#backlog = backlog;
    this.#outlet = new Outlet(sink);
    this.#selection = selection;
    this.#endsWithTenants = endsWithTenants;
    feed.watchers.add(this);
  }

  get mode(): 'broadcast' {
    return 'broadcast';
  }

  get filter(): Filter | undefined {
    return this.#selection.filter;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  get endedBy(): 'error' | 'tenant' | undefined {
    return this.#endedBy;
  }

  blockedMs(nowMs: number): number {
    return this.#outlet.blockedMs(nowMs);
  }

  /** Writes text now; for what comes before the events. */
  write(text: string): void {
    this.#outlet.write(new FrameBytes(text));
  }

  /** Resolves when the network took what was written, or the stream closed. */
  async flushed(): Promise<void> {
    await this.#outlet.flushed();
  }

  /** Goes on behind these points, for as long as the stream lives. */
  begin(vector: CursorVector): void {
    if (this.isClosed) return;
    this.#state = 'behind';
    this.#vector = vector;
    void this.#placeAndCatchUp();
  }

  pump(): void {
    if (this.filter) this.#feed.turns.take(this);
    else this.turn();
  }

  turn(): void {
    try {
      this.#pump();
    } catch (error) {
      this.#fail(error);
    }
  }

  #pump(): void {
    if (this.#state !== 'live') return;
    const { ring } = this.#feed;
    while (!this.#outlet.isFull && this.#next < ring.endIndex) {
      if (this.filter && this.#feed.turns.isOver) {
        this.pump();
        return;
      }
      if (this.#next < ring.firstIndex) {
        void this.#fallBehind();
        return;
      }
      const end = ring.rangeEnd(this.#next, MAX_WRITE_BYTES);
      const { to, bytes } = this.#ahead
        ? this.#rangeBehind(end, this.#ahead)
        : this.#feed.ranges.of(this.#selection, this.#next, end);
      this.#next = to;
      this.#vector = ring.at(to - 1).vector;
      if (!bytes) continue;
      this.#outlet.write(bytes);
      this.#backlog.pace.live();
    }
    if (this.#next === ring.endIndex) this.#endWithLastTenant();
  }

  onDrain(): void {
    this.#outlet.onDrain();
    this.pump();
  }

  bookmark(): void {
    if (this.#state !== 'live' && this.#state !== 'behind') return;
    if (this.#outlet.isFull) return;
    try {
      this.write(bookmarkFrame('Progress', this.#feed.seal(this.#furthest())));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Ends the stream in peace, with its cursor. */
  finish(): void {
    this.bookmark();
    this.#close();
  }

  end(error: StatusError): void {
    if (this.isClosed) return;
    this.#endedBy = 'error';
    const fate = fateOfLastId(error, this.#endsWithTenants);
    // Who has no id yet begins anew.
    const renewed = fate === 'renewed' && this.#state !== 'starting' ? this.#feed.seal(this.#furthest()) : undefined;
    this.write(errorFrame(error, fate === 'forgotten' ? '' : renewed));
    this.#close();
  }

  closed(): void {
    this.#state = 'closed';
    this.#feed.watchers.delete(this);
    this.#outlet.closed();
  }

  #close(): void {
    if (this.isClosed) return;
    this.#outlet.end();
    this.closed();
  }

  async #placeAndCatchUp(): Promise<void> {
    try {
      this.#vector = await this.#feed.placeOf(this.#vector);
      await this.#catchUp();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The ring has moved on without it. */
  async #fallBehind(): Promise<void> {
    this.#state = 'behind';
    this.#vector = this.#furthest();
    this.#ahead = undefined;
    try {
      await this.#catchUp();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Reads the log up to where the feed is, and goes on from the ring; again, if the ring has moved on meanwhile. */
  async #catchUp(): Promise<void> {
    const { ring } = this.#feed;
    for (;;) {
      const next = ring.endIndex;
      const target = this.#feed.vector;
      await catchUp(this.#catchUpDeps(next), this.#vector, target);
      if (this.isClosed) return;
      if (next < ring.firstIndex) continue;
      this.#next = next;
      this.#ahead = isAhead(this.#vector, target) ? this.#vector : undefined;
      if (!this.#ahead) this.#vector = target;
      this.#state = 'live';
      this.pump();
      return;
    }
  }

  #catchUpDeps(begunAt: number): CatchUpDeps {
    return {
      feed: this.#feed,
      ...this.#backlog,
      stint: this.#backlog.pace.stint(() => this.#feed.ring.endIndex - begunAt),
      selection: this.#selection,
      isClosed: () => this.isClosed,
      reached: async (vector, bytes) => {
        this.#vector = vector;
        if (bytes) this.#outlet.write(bytes);
        await this.flushed();
      },
    };
  }

  #rangeBehind(end: number, ahead: CursorVector): SentRange {
    const range = this.#feed.ranges.behind(this.#selection, this.#next, end, ahead);
    if (!isAhead(ahead, this.#feed.ring.at(range.to - 1).vector)) this.#ahead = undefined;
    return range;
  }

  #furthest(): CursorVector {
    return this.#ahead ? furthest(this.#vector, this.#ahead) : this.#vector;
  }

  #endWithLastTenant(): void {
    if (!this.#endsWithTenants || this.#feed.vector.size > 0) return;
    this.#endedBy = 'tenant';
    this.#close();
  }

  /** Timers and sockets call this class: whatever it throws would end the process. */
  #fail(error: unknown): void {
    this.end(this.#feed.errorOf(error, this.#furthest()));
  }
}
