/** Which streams a feed follows: those of its tenants, from their beginning, until the last event of a deleted one. */

import { MAX_CURSOR_STREAMS, type CursorVector } from '#core/cursor.ts';
import type { TenantSet } from '#core/identity.ts';
import { type EventLog, type LogPoint, ORIGIN } from '#core/ports/event-log.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';
import { StatusError } from '#core/status-error.ts';
import type { StreamList } from '#functions/watch/feed/stream-list.ts';
import type { Follower } from '#functions/watch/tail/tail.ts';
import type { Tails } from '#functions/watch/tail/tails.ts';

export interface FollowedStreamsDeps {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
  readonly tails: Tails;
}

/** Whose streams they are. */
export interface Following extends Follower {
  readonly vector: CursorVector;
  /** A stream is followed from this point. */
  onOpened(stream: Stream, point: LogPoint): void;
  /** A stream is not followed any more: all its events were delivered, and there will be no others. */
  onClosed(stream: Stream): void;
  endWatchers(error: StatusError): void;
}

export class FollowedStreams {
  readonly #deps: FollowedStreamsDeps;
  readonly #tenants: TenantSet;
  readonly #feed: Following;
  readonly #byId = new Map<bigint, Stream>();
  #isStopped = false;

  constructor(deps: FollowedStreamsDeps, tenants: TenantSet, feed: Following) {
    this.#deps = deps;
    this.#tenants = tenants;
    this.#feed = feed;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get all(): readonly Stream[] {
    return [...this.#byId.values()];
  }

  get(id: bigint): Stream | undefined {
    return this.#byId.get(id);
  }

  /** Begins at the log's head. @throws {StatusError} BadRequest for more streams than a cursor holds; ServiceUnavailable. */
  async start(): Promise<void> {
    const streams = await this.#deps.streams.list({ tenants: this.#tenants });
    if (streams.length > MAX_CURSOR_STREAMS) throw tooManyTenants(streams.length);
    const ranges = await this.#deps.log.ranges(streams.map((stream) => stream.id));
    const follows = streams.map((stream) => this.#follow(stream, ranges.get(stream.id)?.head ?? ORIGIN));
    // Whoever stops a feed that failed must find it at all its tails.
    await Promise.allSettled(follows);
    await Promise.all(follows);
  }

  /** Leaves its tails, also those that it is about to follow. */
  stop(): void {
    this.#isStopped = true;
    for (const id of this.#byId.keys()) this.#deps.tails.leave(this.#feed, id);
  }

  /**
   * Does what the directory says. Not called again before it has resolved.
   * @param asked closed streams that are followed too: what is not published of them is still to come.
   */
  async update(list: StreamList, asked: ReadonlySet<bigint>): Promise<void> {
    const listed = list.of(this.#tenants);
    for (const stream of listed) if (this.#byId.has(stream.id)) this.#byId.set(stream.id, stream);
    // Room first: a new tenant can be in the place of a deleted one.
    await this.#closeDrained(listed.filter((stream) => stream.drained && this.#byId.has(stream.id)));
    for (const stream of listed) {
      const isWanted = !stream.closed || (!stream.drained && asked.has(stream.id));
      if (isWanted && !this.#byId.has(stream.id)) await this.#open(stream);
    }
  }

  async #closeDrained(drained: readonly Stream[]): Promise<void> {
    if (drained.length === 0) return;
    const ranges = await this.#deps.log.ranges(drained.map((stream) => stream.id));
    if (this.#isStopped) return;
    for (const stream of drained) {
      const reached = this.#feed.vector.get(stream.id)?.seq ?? 0n;
      if (reached >= (ranges.get(stream.id)?.head.seq ?? 0n)) this.#close(stream);
    }
  }

  async #open(stream: Stream): Promise<void> {
    if (this.#byId.size >= MAX_CURSOR_STREAMS) {
      // Closed ones are about to make room: it is opened by one of the next updates.
      if (!this.all.some(({ closed }) => closed)) this.#feed.endWatchers(tooManyTenants(this.#byId.size + 1));
      return;
    }
    await this.#follow(
      stream,
      this.#feed.vector.get(stream.id) ?? (stream.closed ? await this.#headOf(stream.id) : ORIGIN),
    );
  }

  async #follow(stream: Stream, from: LogPoint): Promise<void> {
    if (this.#isStopped) return;
    this.#byId.set(stream.id, stream);
    this.#feed.onOpened(stream, from);
    try {
      await this.#deps.tails.follow(this.#feed, stream.id, from);
    } catch (error) {
      // The next update goes on from where this one came.
      this.#byId.delete(stream.id);
      throw error;
    }
  }

  async #headOf(stream: bigint): Promise<LogPoint> {
    return (await this.#deps.log.ranges([stream])).get(stream)?.head ?? ORIGIN;
  }

  #close(stream: Stream): void {
    this.#byId.delete(stream.id);
    this.#deps.tails.leave(this.#feed, stream.id);
    this.#feed.onClosed(stream);
  }
}

function tooManyTenants(streams: number): StatusError {
  return new StatusError(
    'BadRequest',
    `a watch over ${streams} tenants is too wide: a cursor holds ${MAX_CURSOR_STREAMS}; name fewer in "tenants", ` +
      'or watch as a group',
  );
}
