/** Behind the ring: a watcher reads the log itself, in bounded batches at its client's pace. */

import type { CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, ORIGIN, pointOf, type ReadLimits } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import { assertDense } from '#functions/watch/dense.ts';
import type { Feed } from '#functions/watch/feed.ts';
import { eventFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { missingIn, withoutStream, withPoint } from '#functions/watch/vectors.ts';

const READ: ReadLimits = { maxCount: 250, maxBytes: 256 * 1024 };
const RETRY_MS = 500;

export interface CatchUpDeps {
  readonly feed: Feed;
  readonly log: EventLog;
  readonly selection: Selection;
  isClosed(): boolean;
  /** Everything up to the vector is in these frames; resolves when the client may have more. */
  reached(vector: CursorVector, text: string): Promise<void>;
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
    const events = await readPatiently(deps, stream, point, { ...READ, maxCount });
    const newest = events.at(-1);
    if (!newest) return vector;
    const text = framesOf(deps, events, vector);
    vector = withPoint(vector, stream, pointOf(newest));
    await deps.reached(vector, text);
  }
}

function framesOf({ feed, selection }: CatchUpDeps, events: readonly StreamEvent[], before: CursorVector): string {
  const seal = feed.eventSeal(before);
  let text = '';
  for (const event of events) {
    feed.assertIsolated(event);
    const type = selection.typeOf(event);
    if (type !== undefined) {
      text += eventFrame(event, type, seal?.(withPoint(before, event.stream, pointOf(event))));
    }
  }
  return text;
}

/** While the log is away the watcher stays, and goes on when it returns. Nothing only when the watcher closed. */
async function readPatiently(
  { log, isClosed }: CatchUpDeps,
  stream: bigint,
  after: LogPoint,
  limits: ReadLimits,
): Promise<readonly StreamEvent[]> {
  while (!isClosed()) {
    try {
      const { events } = await log.read(stream, after, limits);
      assertDense(stream, after, events);
      if (events.length > 0) return events;
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'ServiceUnavailable') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return [];
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
    const text = tenant === undefined ? '' : tenantGoneFrame(tenant, feed.eventSeal(vector)?.(vector));
    await deps.reached(vector, text);
  }
  return vector;
}
