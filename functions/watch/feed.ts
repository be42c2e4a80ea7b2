/**
 * A feed is what all watchers of one audience and one set of tenants see: the merged events of their streams, each
 * serialised once, with one cursor behind each. Watchers pull from its ring; it never waits for any of them.
 */

import { MAX_CURSOR_STREAMS, type Cursors, type CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { type Audience, seesTenant, type TenantSet } from '#core/identity.ts';
import type { EventLog, LogPoint, PositionExpired } from '#core/ports/event-log.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import { type Entry, EventEntry, TenantGoneEntry } from '#functions/watch/entry.ts';
import { FrameBytes } from '#functions/watch/frames.ts';
import { Ring } from '#functions/watch/ring.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Follower } from '#functions/watch/tail.ts';
import type { Tails } from '#functions/watch/tails.ts';

export interface FeedDeps {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
  readonly tails: Tails;
  readonly cursors: Cursors;
  /** An event of a tenant that does not belong to its stream: must never happen, and is counted. */
  readonly onIsolationViolation: (stream: bigint) => void;
}

/** Who looks into a feed. */
export interface FeedWatcher {
  /** The ring has new entries. */
  pump(): void;
  end(error: StatusError): void;
}

/** Beyond this many streams a cursor is too long to ride on every event: it rides on bookmarks. */
const MAX_STREAMS_WITH_EVENT_CURSORS = 16;
const SHARED_RANGES = 64;

export class Feed implements Follower {
  readonly tenants: TenantSet;
  readonly watchers: Set<FeedWatcher> = new Set();
  readonly ring: Ring;
  readonly #deps: FeedDeps;
  readonly #audience: Audience;
  /** The streams that the feed follows, by id. */
  readonly #streams = new Map<bigint, Stream>();
  #vector: CursorVector = new Map();
  #refreshing: Promise<void> | undefined;
  #shared = new Map<string, FrameBytes | undefined>();
  /** The sealed vector, and of which vector. */
  #sealed: { readonly vector: CursorVector; readonly cursor: string } | undefined;

  constructor(deps: FeedDeps, audience: Audience, tenants: TenantSet) {
    this.#deps = deps;
    this.#audience = audience;
    this.tenants = tenants;
    this.ring = new Ring({ maxEntries: 2048, maxBytes: 8 * 1024 * 1024, maxAgeMs: 60_000 });
  }

  /** Where the end of the ring is. */
  get vector(): CursorVector {
    return this.#vector;
  }

  /** The tenants whose streams it follows now. */
  get tenantNames(): readonly string[] {
    return [...this.#streams.values()].map((stream) => stream.tenant);
  }

  /**
   * Begins at the log's head. Called once, before anything else.
   * @throws {StatusError} BadRequest for more streams than a cursor holds; ServiceUnavailable.
   */
  async start(): Promise<void> {
    const streams = await this.#deps.streams.list({ tenants: this.tenants });
    assertFits(streams.length);
    const ranges = await this.#deps.log.ranges(streams.map((stream) => stream.id));
    const points = new Map(streams.map(({ id }) => [id, ranges.get(id)?.head ?? ORIGIN]));
    this.#vector = points;
    for (const stream of streams) this.#streams.set(stream.id, stream);
    const follows = [...points].map(([id, point]) => this.#deps.tails.follow(this, id, point));
    // Whoever stops a feed that failed must find it at all its tails.
    await Promise.allSettled(follows);
    await Promise.all(follows);
  }

  /** Leaves its tails. */
  stop(): void {
    for (const id of this.#streams.keys()) this.#deps.tails.leave(this, id);
  }

  onEvents(streamId: bigint, events: readonly StreamEvent[]): void {
    if (!this.#streams.has(streamId)) return;
    for (const event of events) {
      try {
        this.assertIsolated(event);
      } catch (error) {
        this.endWatchers(toStatusError(error));
        return;
      }
      this.#advance(
        new Map(this.#vector).set(streamId, { seq: event.seq, position: event.position }),
        (vector) => new EventEntry(event, vector, this.sealEntry),
      );
    }
    this.#pump();
  }

  /**
   * The last wall between tenants, asked for every event that is read, wherever it came from.
   * @throws {StatusError} InternalError, and counts it.
   */
  assertIsolated({ stream, resource: { tenant } }: StreamEvent): void {
    const owner = this.#streams.get(stream)?.tenant ?? tenant;
    if (owner === tenant && seesTenant({ tenants: this.tenants }, tenant)) return;
    this.#deps.onIsolationViolation(stream);
    throw new StatusError('InternalError', 'the stream was ended for safety; list and watch again');
  }

  /** What the directory knows of streams, also of closed ones, in this feed's scope. */
  async streamsOf(ids: readonly bigint[]): Promise<readonly Stream[]> {
    const listed = await this.#deps.streams.list({ tenants: this.tenants }, ids);
    return listed.filter((stream) => ids.includes(stream.id));
  }

  onExpired(stream: bigint, error: PositionExpired): void {
    this.#vector = new Map(this.#vector).set(stream, error.earliest);
    this.endWatchers(
      new StatusError('Expired', `${error.message}; list and watch from the cursor of that list`, {
        details: { cursor: this.seal(this.#vector) },
      }),
    );
  }

  /**
   * Follows new tenants from their beginning and lets go of deleted ones behind their last event.
   * @param alsoIds streams that a watcher knows: of those of deleted tenants, what is not published yet is still to come.
   */
  async refresh(alsoIds: readonly bigint[] = []): Promise<void> {
    // One at a time, each with a look at the directory that is younger than its call.
    const before = this.#refreshing;
    const refreshing = (async () => {
      await before?.catch(() => undefined);
      await this.#refresh(alsoIds);
    })();
    this.#refreshing = refreshing;
    await refreshing;
  }

  async #refresh(alsoIds: readonly bigint[]): Promise<void> {
    const listed = await this.#deps.streams.list({ tenants: this.tenants }, [...this.#streams.keys(), ...alsoIds]);
    for (const stream of listed) if (!this.#streams.has(stream.id) && !stream.drained) await this.#open(stream);
    const drained = listed.filter((stream) => stream.drained && this.#streams.has(stream.id));
    if (drained.length === 0) return;
    const ranges = await this.#deps.log.ranges(drained.map((stream) => stream.id));
    for (const stream of drained) {
      const reached = this.#vector.get(stream.id)?.seq ?? 0n;
      if (reached >= (ranges.get(stream.id)?.head.seq ?? 0n)) this.#close(stream);
      else this.#deps.tails.wake(stream.id);
    }
  }

  async #open(stream: Stream): Promise<void> {
    if (this.#streams.size >= MAX_CURSOR_STREAMS) {
      this.endWatchers(tooManyTenants(this.#streams.size + 1));
      return;
    }
    const from = this.#vector.get(stream.id) ?? (stream.closed ? await this.#headOf(stream.id) : ORIGIN);
    this.#streams.set(stream.id, stream);
    this.#vector = new Map(this.#vector).set(stream.id, from);
    try {
      await this.#deps.tails.follow(this, stream.id, from);
    } catch (error) {
      // The next refresh goes on from where this one came.
      this.#streams.delete(stream.id);
      throw error;
    }
  }

  async #headOf(stream: bigint): Promise<LogPoint> {
    return (await this.#deps.log.ranges([stream])).get(stream)?.head ?? ORIGIN;
  }

  #close(stream: Stream): void {
    this.#streams.delete(stream.id);
    this.#deps.tails.leave(this, stream.id);
    const vector = new Map(this.#vector);
    vector.delete(stream.id);
    this.#advance(vector, () => new TenantGoneEntry(stream.tenant, vector, this.sealEntry));
    this.#pump();
  }

  #advance(vector: CursorVector, entry: (vector: CursorVector) => Entry): void {
    this.#vector = vector;
    this.ring.append(entry(vector));
  }

  #pump(): void {
    this.ring.trim();
    this.#shared.clear();
    for (const watcher of this.watchers) watcher.pump();
  }

  endWatchers(error: StatusError): void {
    for (const watcher of this.watchers) watcher.end(error);
  }

  /** The entries of a range as a selection sees them, encoded once for all watchers who are at the same place. */
  bytes(selection: Selection, from: number, to: number): FrameBytes | undefined {
    const key = `${from}:${to}:${selection.key}`;
    if (this.#shared.has(key)) return this.#shared.get(key);
    let text = '';
    for (let index = from; index < to; index += 1) text += this.ring.at(index).frame(selection) ?? '';
    const bytes = text === '' ? undefined : new FrameBytes(text);
    if (this.#shared.size >= SHARED_RANGES) this.#shared.clear();
    this.#shared.set(key, bytes);
    return bytes;
  }

  /** The cursor of a vector, for this feed's audience and tenants. */
  seal(vector: CursorVector): string {
    if (this.#sealed?.vector !== vector) {
      this.#sealed = { vector, cursor: this.#deps.cursors.seal(vector, this.#audience, this.tenants) };
    }
    return this.#sealed.cursor;
  }

  /** The cursor that an event carries, where events carry one. */
  readonly sealEntry = (vector: CursorVector): string | undefined =>
    vector.size > MAX_STREAMS_WITH_EVENT_CURSORS ? undefined : this.seal(vector);
}

const ORIGIN: LogPoint = { seq: 0n, position: 0n };

function assertFits(streams: number): void {
  if (streams > MAX_CURSOR_STREAMS) throw tooManyTenants(streams);
}

function tooManyTenants(streams: number): StatusError {
  return new StatusError(
    'BadRequest',
    `a watch over ${streams} tenants is too wide: a cursor holds ${MAX_CURSOR_STREAMS}; name fewer in "tenants"`,
  );
}
