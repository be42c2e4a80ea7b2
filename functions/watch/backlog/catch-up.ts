/** Behind the ring: a watcher reads the log itself, in bounded batches at its client's pace. */

import type { CursorVector } from '#core/cursor.ts';
import type { EventType, StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, ORIGIN, pointOf, type ReadLimits } from '#core/ports/event-log.ts';
import { isUnavailable } from '#core/status-error.ts';
import { assertDense } from '#functions/watch/tail/dense.ts';
import type { Feed } from '#functions/watch/feed/feed.ts';
import { eventFrame, FrameBytes, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Batch, MissedBatches } from '#functions/watch/backlog/missed-batches.ts';
import type { Pace, Stint } from '#functions/watch/pacing/pace.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { missingIn, withoutStream, withPoint } from '#functions/watch/vectors.ts';

const READ: ReadLimits = { maxCount: 250, maxBytes: 256 * 1024 };
/** Beside live watchers: what a read gives is parsed in one piece, 250 events in 2 ms. */
const SLOW_COUNT = 50;
const RETRY_MS = 500;
const SLICE_MS = 0.3;

/** What the process has for all who are behind. */
export interface Backlog {
  readonly log: EventLog;
  readonly missed: MissedBatches;
  readonly pace: Pace;
}

export interface CatchUpDeps extends Backlog {
  readonly feed: Feed;
  readonly stint: Stint;
  readonly selection: Selection;
  isClosed(): boolean;
  /** Everything up to the vector is in these frames; resolves when the client may have more. */
  reached(vector: CursorVector, bytes: FrameBytes | undefined): Promise<void>;
}

/**
 * Reads every stream from one vector to the other. Streams that only the first has belonged to tenants that are gone:
 * they are read to their end, before all else, so that never more streams are in a cursor than in the larger vector.
 * Stops early when the watcher closes.
 * @throws {PositionExpired} when retention was faster.
 * @throws {LogHole}
 */
export async function catchUp(deps: CatchUpDeps, from: CursorVector, target: CursorVector): Promise<void> {
  let vector = from;
  const closed = missingIn(from, target);
  if (closed.length > 0) vector = await finishStreams(deps, vector, closed);
  for (const [stream, point] of target) vector = await readTo(deps, vector, stream, point);
}

async function readTo(deps: CatchUpDeps, from: CursorVector, stream: bigint, target: LogPoint): Promise<CursorVector> {
  let vector = from;
  for (;;) {
    const point = vector.get(stream) ?? ORIGIN;
    if (point.seq >= target.seq || deps.isClosed()) return vector;
    const most = deps.stint.isSlow ? SLOW_COUNT : READ.maxCount;
    const maxCount = Math.min(most, Number(target.seq - point.seq));
    const batch = await readPatiently(deps, vector, stream, maxCount);
    if (!batch?.end) return vector;
    vector = withPoint(vector, stream, batch.end);
    await deps.reached(vector, batch.bytes);
  }
}

/** While the log is away the watcher stays, and goes on when it returns. Undefined only when the watcher closed. */
async function readPatiently(
  deps: CatchUpDeps,
  from: CursorVector,
  stream: bigint,
  maxCount: number,
): Promise<Batch | undefined> {
  const { feed, missed, selection, stint } = deps;
  const key = [stream, maxCount, feed.eventSeal(from) ? placeOf(from) : from.get(stream)?.seq, selection.key].join();
  while (!deps.isClosed()) {
    try {
      const batch = await missed.of(feed, key, () =>
        stint.run(maxCount, () => readBatch(deps, from, stream, maxCount)),
      );
      if (batch.end) return batch;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return undefined;
}

/** The part of each event's cursor that the others of its batch share. */
function placeOf(vector: CursorVector): string {
  return [...vector].map(([id, { seq, position }]) => `${id}:${seq}:${position}`).join();
}

async function readBatch(deps: CatchUpDeps, from: CursorVector, stream: bigint, maxCount: number): Promise<Batch> {
  const after = from.get(stream) ?? ORIGIN;
  const { log, stint } = deps;
  const startedAtMs = stint.nowMs();
  const { events } = await log.read(stream, after, { ...READ, maxCount });
  if (stint.isSlow) await stint.rest(startedAtMs);
  assertDense(stream, after, events);
  return batchOf(deps, events, from);
}

/**
 * In slices: who is a million events behind keeps this process busy for minutes, and others have their events meanwhile.
 * Ends before an event that its selection fails on, so that what is before it is delivered first.
 */
async function batchOf(
  { feed, selection, stint }: CatchUpDeps,
  events: readonly StreamEvent[],
  before: CursorVector,
): Promise<Batch> {
  const seal = feed.eventSeal(before);
  let end: LogPoint | undefined;
  let text = '';
  let beganAtMs = stint.nowMs();
  for (const event of events) {
    if (stint.nowMs() - beganAtMs > SLICE_MS) {
      await stint.rest(beganAtMs);
      beganAtMs = stint.nowMs();
    }
    feed.assertIsolated(event);
    let type: EventType | undefined;
    try {
      type = selection.typeOf(event);
    } catch (error) {
      if (end) break;
      throw error;
    }
    end = pointOf(event);
    if (type !== undefined) text += eventFrame(event, type, seal?.(withPoint(before, event.stream, end)));
  }
  return { end, bytes: text === '' ? undefined : new FrameBytes(text) };
}

async function finishStreams(deps: CatchUpDeps, from: CursorVector, closed: readonly bigint[]): Promise<CursorVector> {
  const { feed, log } = deps;
  const [ranges, streams] = await Promise.all([log.ranges(closed), feed.streamsOf(closed)]);
  let vector = from;
  for (const id of closed) {
    vector = await readTo(deps, vector, id, ranges.get(id)?.head ?? ORIGIN);
    if (deps.isClosed()) return vector;
    vector = withoutStream(vector, id);
    const tenant = streams.find((stream) => stream.id === id)?.tenant;
    const gone = tenant === undefined ? undefined : tenantGoneFrame(tenant, feed.eventSeal(vector)?.(vector));
    await deps.reached(vector, gone === undefined ? undefined : new FrameBytes(gone));
  }
  return vector;
}
