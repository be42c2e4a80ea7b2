/** Behind the ring: a watcher reads the log itself, in bounded batches at its client's pace. */

import { yieldToOthers } from '#loop/yield-to-others.ts';
import type { CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, ORIGIN, pointOf, type ReadLimits } from '#core/ports/event-log.ts';
import { isUnavailable } from '#core/status-error.ts';
import { assertDense } from '#functions/watch/dense.ts';
import type { Feed } from '#functions/watch/feed.ts';
import { eventFrame, FrameBytes, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Batch, MissedBatches } from '#functions/watch/missed-batches.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { missingIn, withoutStream, withPoint } from '#functions/watch/vectors.ts';

const READ: ReadLimits = { maxCount: 250, maxBytes: 256 * 1024 };
const RETRY_MS = 500;
const SLICE_MS = 0.5;

export interface CatchUpDeps {
  readonly feed: Feed;
  readonly log: EventLog;
  readonly missed: MissedBatches;
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
    const maxCount = Math.min(READ.maxCount, Number(target.seq - point.seq));
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
  const { feed, missed, selection } = deps;
  const key = [stream, maxCount, feed.eventSeal(from) ? placeOf(from) : from.get(stream)?.seq, selection.key].join();
  while (!deps.isClosed()) {
    try {
      const batch = await missed.of(feed, key, () => readBatch(deps, from, stream, maxCount));
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

async function readBatch(
  { feed, log, selection }: Pick<CatchUpDeps, 'feed' | 'log' | 'selection'>,
  from: CursorVector,
  stream: bigint,
  maxCount: number,
): Promise<Batch> {
  const after = from.get(stream) ?? ORIGIN;
  const { events } = await log.read(stream, after, { ...READ, maxCount });
  assertDense(stream, after, events);
  const newest = events.at(-1);
  const text = await framesOf(feed, selection, events, from);
  return { end: newest && pointOf(newest), bytes: text === '' ? undefined : new FrameBytes(text) };
}

/** In slices: who is a million events behind keeps this process busy for minutes, and others have their events meanwhile. */
async function framesOf(
  feed: Feed,
  selection: Selection,
  events: readonly StreamEvent[],
  before: CursorVector,
): Promise<string> {
  const seal = feed.eventSeal(before);
  let text = '';
  let beganAtMs = performance.now();
  for (const event of events) {
    if (performance.now() - beganAtMs > SLICE_MS) {
      await yieldToOthers();
      beganAtMs = performance.now();
    }
    feed.assertIsolated(event);
    const type = selection.typeOf(event);
    if (type !== undefined) {
      text += eventFrame(event, type, seal?.(withPoint(before, event.stream, pointOf(event))));
    }
  }
  return text;
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
