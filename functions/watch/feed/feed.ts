/**
 * A feed is what all watchers of one audience and one set of tenants see: the merged events of their streams, each
 * serialised once, with one cursor behind each. Watchers pull from its ring; it never waits for any of them.
 */

import { MAX_CURSOR_STREAMS, type Cursors, type CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { type Audience, seesTenant, type TenantSet } from '#core/identity.ts';
import { type LogPoint, pointOf, PositionExpired } from '#core/ports/event-log.ts';
import type { Stream } from '#core/ports/streams.ts';
import { StatusError } from '#core/status-error.ts';
import { EventEntry, type Seal, TenantGoneEntry } from '#functions/watch/feed/entry.ts';
import { FollowedStreams, type FollowedStreamsDeps, type Following } from '#functions/watch/feed/followed-streams.ts';
import { FilterFailed } from '#functions/watch/filter/compile.ts';
import { RangeBytes } from '#functions/watch/feed/range-bytes.ts';
import { Ring } from '#functions/watch/feed/ring.ts';
import type { StreamList } from '#functions/watch/feed/stream-list.ts';
import type { Turns } from '#functions/watch/pacing/turns.ts';
import { missingIn, withoutStream, withPoint } from '#functions/watch/vectors.ts';
import { filterFailed, stopping, watchError } from '#functions/watch/watch-errors.ts';

export interface FeedDeps extends FollowedStreamsDeps {
  readonly cursors: Cursors;
  readonly turns: Turns;
  /** The directory as it is after the call, shared by all who ask: of the tenants of all feeds, and all their `ids`. */
  readonly listStreams: () => Promise<StreamList>;
  /** An event of a tenant that does not belong to its stream: must never happen, and is counted. */
  readonly onIsolationViolation: (stream: bigint) => void;
  /** A watcher's filter could not be evaluated over an event. */
  readonly onFilterError: () => void;
  /** A fault of ours, or of the log. */
  readonly onError: (error: unknown) => void;
}

/** Who looks into a feed. */
export interface FeedWatcher {
  /** The ring has new entries. */
  pump(): void;
  end(error: StatusError): void;
}

/** Whose feed it is. */
export interface FeedScope {
  readonly audience: Audience;
  /** What its watchers see. */
  readonly tenants: TenantSet;
  /** What their cursors are bound to: the same, and those of it that are blocked. */
  readonly granted: TenantSet;
}

/** Beyond this many streams a cursor is too long to ride on every event: it rides on bookmarks. */
const MAX_STREAMS_WITH_EVENT_CURSORS = 16;

export class Feed implements Following {
  readonly tenants: TenantSet;
  /** Watchers that filter do it in turns. */
  readonly turns: Turns;
  readonly watchers: Set<FeedWatcher> = new Set();
  readonly ring: Ring = new Ring({ maxEntries: 2048, maxBytes: 8 * 1024 * 1024, maxAgeMs: 60_000 });
  /** Of the ring, encoded. */
  readonly ranges: RangeBytes;
  readonly #deps: FeedDeps;
  readonly #scope: FeedScope;
  readonly #followed: FollowedStreams;
  #vector: CursorVector = new Map();
  /** What watchers know beside what the feed follows, while they wait for a look at the directory. */
  readonly #asked = new Set<readonly bigint[]>();
  #update: { readonly list: StreamList; readonly done: Promise<void> } | undefined;
  /** The sealed vector, and of which vector. */
  #sealed: { readonly vector: CursorVector; readonly cursor: string } | undefined;

  constructor(deps: FeedDeps, scope: FeedScope) {
    this.#deps = deps;
    this.#scope = scope;
    this.tenants = scope.tenants;
    this.turns = deps.turns;
    this.ranges = new RangeBytes(this.ring, deps.turns);
    this.#followed = new FollowedStreams(deps, scope.tenants, this);
  }

  /** Where the end of the ring is. */
  get vector(): CursorVector {
    return this.#vector;
  }

  /** The tenants whose streams it follows now. */
  get tenantNames(): readonly string[] {
    return this.#followed.all.map((stream) => stream.tenant);
  }

  /** The streams whose state it needs to know. */
  get ids(): readonly bigint[] {
    return [...this.#vector.keys(), ...[...this.#asked].flat()];
  }

  /**
   * Begins at the log's head. Called once, before anything else.
   * @throws {StatusError} BadRequest for more streams than a cursor holds; ServiceUnavailable.
   */
  async start(): Promise<void> {
    await this.#followed.start();
  }

  /** Leaves its tails. */
  stop(): void {
    this.#followed.stop();
  }

  /** @throws {StatusError} ServiceUnavailable: who would watch now would see nothing. */
  assertRunning(): void {
    if (this.#followed.isStopped) throw stopping();
  }

  /**
   * Follows new tenants and lets go of deleted ones, as the directory has them after this call.
   * @param alsoIds streams that a watcher knows: of those of deleted tenants, what is not published yet is still to come.
   */
  async refresh(alsoIds: readonly bigint[] = []): Promise<void> {
    this.#asked.add(alsoIds);
    try {
      const list = await this.#deps.listStreams();
      if (this.#update?.list !== list) this.#update = { list, done: this.#updateAfter(this.#update?.done, list) };
      await this.#update.done;
    } finally {
      this.#asked.delete(alsoIds);
    }
  }

  async #updateAfter(before: Promise<void> | undefined, list: StreamList): Promise<void> {
    const asked = new Set([...this.#asked].flat());
    await before?.catch(() => undefined);
    if (!this.#followed.isStopped) await this.#followed.update(list, asked);
  }

  /**
   * Where a watcher is that begins at these points. A stream of this feed that they do not have is read from its
   * beginning; but one that was closed before does not concern the watcher.
   * @throws {StatusError} ServiceUnavailable.
   */
  async placeOf(points: CursorVector): Promise<CursorVector> {
    const unknown = missingIn(points, this.#vector);
    if (unknown.length === 0 && points.size === this.#vector.size) return points;
    await this.refresh(unknown);
    const known = await this.streamsOf(missingIn(points, this.#vector));
    const closed = [...this.#vector].filter(([id]) => !points.has(id) && this.#followed.get(id)?.closed);
    const isTooMuch = points.size + closed.length > MAX_CURSOR_STREAMS;
    if (isTooMuch || known.some(({ drained }) => !drained)) throw crowded();
    return new Map([...points, ...closed]);
  }

  /** What the directory knows of streams, also of closed ones, in this feed's scope. */
  async streamsOf(ids: readonly bigint[]): Promise<readonly Stream[]> {
    if (ids.length === 0) return [];
    const listed = await this.#deps.streams.list({ tenants: this.tenants }, ids);
    return listed.filter((stream) => ids.includes(stream.id));
  }

  onOpened({ id }: Stream, point: LogPoint): void {
    this.#vector = withPoint(this.#vector, id, point);
  }

  onClosed({ id, tenant }: Stream): void {
    this.#vector = withoutStream(this.#vector, id);
    this.ring.append(new TenantGoneEntry(tenant, this.#vector, this.eventSeal(this.#vector)));
    this.#pump();
  }

  onEvents(stream: bigint, events: readonly StreamEvent[]): void {
    const newest = events.at(-1);
    if (!newest || !this.#followed.get(stream)) return;
    const before = this.#vector;
    const behind = withPoint(before, stream, pointOf(newest));
    this.#vector = behind;
    try {
      for (const event of events) this.assertIsolated(event);
    } catch (error) {
      this.endWatchers(this.errorOf(error, before));
      return;
    }
    const seal = this.eventSeal(behind);
    for (const event of events) {
      this.ring.append(new EventEntry(event, { before, behind: event === newest ? behind : undefined }, seal));
    }
    this.#pump();
  }

  onGap(stream: bigint, point: LogPoint, error: unknown): void {
    this.#vector = withPoint(this.#vector, stream, point);
    this.endWatchers(watchError(error, () => this.seal(this.#vector)));
  }

  /**
   * The last wall between tenants, asked for every event that is read, wherever it came from.
   * @throws {StatusError} InternalError, and counts it.
   */
  assertIsolated({ stream, subject: { tenant } }: StreamEvent): void {
    const owner = this.#followed.get(stream)?.tenant ?? tenant;
    if (owner === tenant && seesTenant({ tenants: this.tenants }, tenant)) return;
    this.#deps.onIsolationViolation(stream);
    throw new StatusError('InternalError', 'the stream was ended for safety; list and watch again');
  }

  /** What a watcher at this place is told of an error; undefined for one that has no place yet. Faults are reported. */
  errorOf(error: unknown, place: CursorVector | undefined): StatusError {
    const vector = place ?? this.#vector;
    if (error instanceof FilterFailed) {
      this.#deps.onFilterError();
      return filterFailed(error, place && this.seal(place));
    }
    if (!(error instanceof StatusError || error instanceof PositionExpired)) this.#deps.onError(error);
    return watchError(error, (stream, point) => this.seal(withPoint(vector, stream, point)));
  }

  endWatchers(error: StatusError): void {
    for (const watcher of this.watchers) watcher.end(error);
  }

  /** The cursor of a vector, for this feed's audience and what is granted. */
  readonly seal = (vector: CursorVector): string => {
    if (this.#sealed?.vector !== vector) {
      const { audience, granted } = this.#scope;
      this.#sealed = { vector, cursor: this.#deps.cursors.seal(vector, audience, granted) };
    }
    return this.#sealed.cursor;
  };

  /** Seals what events carry at such a vector. */
  eventSeal(vector: CursorVector): Seal {
    return vector.size > MAX_STREAMS_WITH_EVENT_CURSORS ? undefined : this.seal;
  }

  #pump(): void {
    this.ring.trim();
    this.ranges.clear();
    for (const watcher of this.watchers) watcher.pump();
  }
}

function crowded(): StatusError {
  return new StatusError('ServiceUnavailable', 'a deleted tenant still makes room for a new one; connect again', {
    details: { retryAfterSeconds: 2 },
  });
}
