/**
 * One client's watch: a place in its feed, pulled as fast as the client takes it. Behind the ring it reads the log until
 * it catches up. It delivers each event of a stream once, in order, and never an older one after a newer one.
 */

import type { CursorVector } from '#core/cursor.ts';
import { type EventLog, PositionExpired } from '#core/ports/event-log.ts';
import type { SseSink } from '#core/ports/sse.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import { catchUp, type CatchUpDeps } from '#functions/watch/catch-up.ts';
import type { Feed, FeedWatcher } from '#functions/watch/feed.ts';
import { bookmarkFrame, errorFrame, FrameBytes } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { furthest, isAhead } from '#functions/watch/vectors.ts';

/** Beyond this much that the network did not take, nothing more is written. */
const HIGH_WATER_BYTES = 64 * 1024;
const MAX_WRITE_BYTES = 256 * 1024;
/** A client that is being refused gets this long to take the last frame. */
const LINGER_MS = 5_000;

export interface WatcherDeps {
  readonly feed: Feed;
  readonly log: EventLog;
  readonly sink: SseSink;
  readonly selection: Selection;
  /** The tenants were named one by one: with the last of them the watch ends. */
  readonly endsWithTenants: boolean;
}

/** A class, for its memory: an idle watcher is one of thousands. */
export class Watcher implements FeedWatcher {
  readonly #feed: Feed;
  readonly #log: EventLog;
  readonly #sink: SseSink;
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
  #drained: (() => void) | undefined;
  #writtenBytes = 0;
  /** How much of it the network had taken when it was last looked at, and when that had grown. */
  #takenBytes = 0;
  #takenAtMs: number = performance.now();

  constructor({ feed, log, sink, selection, endsWithTenants }: WatcherDeps) {
    this.#feed = feed;
    this.#log = log;
    this.#sink = sink;
    this.#selection = selection;
    this.#endsWithTenants = endsWithTenants;
    feed.watchers.add(this);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Why it ended by itself. */
  get endedBy(): 'error' | 'tenant' | undefined {
    return this.#endedBy;
  }

  /**
   * How long the client has taken nothing of what is waiting for it; 0 when nothing is. Compares with the call before:
   * whoever is slow, and goes on, is not blocked, however long it never has everything.
   */
  blockedMs(nowMs: number): number {
    const { bufferedBytes } = this.#sink;
    const takenBytes = this.#writtenBytes - bufferedBytes;
    if (bufferedBytes === 0 || takenBytes > this.#takenBytes) {
      this.#takenBytes = takenBytes;
      this.#takenAtMs = nowMs;
    }
    return nowMs - this.#takenAtMs;
  }

  /** Writes text now; for what comes before the events. */
  write(text: string): void {
    this.#write(new FrameBytes(text));
  }

  /** Resolves when the network took what was written, or the stream closed. */
  async flushed(): Promise<void> {
    while (this.#sink.bufferedBytes > HIGH_WATER_BYTES && !this.isClosed) {
      await new Promise<void>((resolve) => (this.#drained = resolve));
    }
  }

  /** Goes on behind these points, for as long as the stream lives. */
  begin(vector: CursorVector): void {
    if (this.isClosed) return;
    this.#vector = vector;
    void this.#catchUp();
  }

  pump(): void {
    if (this.#state !== 'live') return;
    const { ring } = this.#feed;
    while (this.#sink.bufferedBytes <= HIGH_WATER_BYTES && this.#next < ring.endIndex) {
      if (this.#next < ring.firstIndex) {
        void this.#catchUp();
        return;
      }
      const to = this.#rangeEnd();
      const bytes = this.#ahead
        ? this.#bytesBehind(to, this.#ahead)
        : this.#feed.bytes(this.#selection, this.#next, to);
      this.#next = to;
      this.#vector = ring.at(to - 1).vector;
      if (bytes) this.#write(bytes);
    }
    if (this.#next === ring.endIndex) this.#endWithLastTenant();
  }

  onDrain(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
    this.pump();
  }

  /** Heartbeat and progress in one. */
  bookmark(): void {
    if (this.#state !== 'live' && this.#state !== 'behind') return;
    if (this.#sink.bufferedBytes > HIGH_WATER_BYTES) return;
    this.write(bookmarkFrame('Progress', this.#feed.seal(this.#furthest())));
  }

  /** Ends the stream in peace, with its cursor. */
  finish(): void {
    this.bookmark();
    this.#close();
  }

  end(error: StatusError): void {
    if (this.isClosed) return;
    this.#endedBy = 'error';
    this.write(errorFrame(error, { forget: error.code === 410 || error.code === 400 }));
    this.#close();
  }

  /** The connection is gone. */
  closed(): void {
    this.#state = 'closed';
    this.#feed.watchers.delete(this);
    this.#drained?.();
  }

  #close(): void {
    if (this.isClosed) return;
    this.closed();
    this.#sink.end();
    if (this.#sink.bufferedBytes > 0) setTimeout(() => this.#sink.destroy(), LINGER_MS);
  }

  #write(bytes: FrameBytes): void {
    if (this.isClosed) return;
    this.#sink.write(bytes);
    this.#writtenBytes += bytes.plain.byteLength;
  }

  /** Reads the log up to where the feed is, and goes on from the ring; again, if the ring has moved on meanwhile. */
  async #catchUp(): Promise<void> {
    this.#state = 'behind';
    this.#vector = this.#furthest();
    this.#ahead = undefined;
    try {
      await this.#tellFeedOfStreams();
      for (;;) {
        const next = this.#feed.ring.endIndex;
        const target = this.#feed.vector;
        await catchUp(this.#catchUpDeps(), this.#vector, target);
        if (this.isClosed) return;
        if (next < this.#feed.ring.firstIndex) continue;
        this.#next = next;
        this.#ahead = isAhead(this.#vector, target) ? this.#vector : undefined;
        if (!this.#ahead) this.#vector = target;
        this.#state = 'live';
        this.pump();
        return;
      }
    } catch (error) {
      this.end(this.#endOf(error));
    }
  }

  /** Where the feed has not heard yet of a new tenant, or began when a deleted one was gone. */
  async #tellFeedOfStreams(): Promise<void> {
    const unknown = [...this.#vector.keys()].filter((id) => !this.#feed.vector.has(id));
    if (unknown.length > 0) await this.#feed.refresh(unknown);
  }

  #catchUpDeps(): CatchUpDeps {
    return {
      feed: this.#feed,
      log: this.#log,
      selection: this.#selection,
      isClosed: () => this.isClosed,
      reached: async (vector, text) => {
        this.#vector = vector;
        if (text !== '') this.write(text);
        await this.flushed();
      },
    };
  }

  #rangeEnd(): number {
    const { ring } = this.#feed;
    let to = this.#next;
    for (let size = 0; to < ring.endIndex && (size === 0 || size < MAX_WRITE_BYTES); to += 1) size += ring.at(to).size;
    return to;
  }

  /** The same without what this watcher had before its feed: its list was newer than the feed. */
  #bytesBehind(to: number, ahead: CursorVector): FrameBytes | undefined {
    let text = '';
    for (let index = this.#next; index < to; index += 1) {
      const entry = this.#feed.ring.at(index);
      if (!entry.isBehind(ahead)) text += entry.frame(this.#selection, furthest(entry.vector, ahead)) ?? '';
    }
    if (!isAhead(ahead, this.#feed.ring.at(to - 1).vector)) this.#ahead = undefined;
    return text === '' ? undefined : new FrameBytes(text);
  }

  #furthest(): CursorVector {
    return this.#ahead ? furthest(this.#vector, this.#ahead) : this.#vector;
  }

  #endWithLastTenant(): void {
    if (!this.#endsWithTenants || this.#feed.vector.size > 0) return;
    this.#endedBy = 'tenant';
    this.#close();
  }

  #endOf(error: unknown): StatusError {
    if (!(error instanceof PositionExpired)) return toStatusError(error);
    const earliest = new Map(this.#vector).set(error.stream, error.earliest);
    return new StatusError('Expired', `${error.message}; list and watch from the cursor of that list`, {
      details: { cursor: this.#feed.seal(earliest) },
    });
  }
}
