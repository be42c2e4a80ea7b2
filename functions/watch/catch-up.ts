/** Behind the ring: a watcher reads the log itself, in bounded batches at its client's pace. */

import type { CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import type { EventLog, LogPoint, ReadLimits } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import type { Feed } from '#functions/watch/feed.ts';
import { eventFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';

const READ: ReadLimits = { maxCount: 250, maxBytes: 512 * 1024 };
const RETRY_MS = 500;
const ORIGIN: LogPoint = { seq: 0n, position: 0n };

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
 * they are read to their end. Stops early when the watcher closes.
 * @throws {PositionExpired} when retention was faster.
 */
export async function catchUp(deps: CatchUpDeps, from: CursorVector, target: CursorVector): Promise<void> {
  let vector = from;
  for (const [stream, point] of target) vector = await readTo(deps, vector, stream, point);
  const closed = [...vector.keys()].filter((id) => !target.has(id));
  if (closed.length > 0) await finishStreams(deps, vector, closed);
}

async function readTo(deps: CatchUpDeps, from: CursorVector, stream: bigint, target: LogPoint): Promise<CursorVector> {
  let vector = from;
  for (;;) {
    const point = vector.get(stream) ?? ORIGIN;
    if (point.seq >= target.seq || deps.isClosed()) return vector;
    const maxCount = Math.min(READ.maxCount, Number(target.seq - point.seq));
    let text = '';
    for (const event of await readPatiently(deps, stream, point, { ...READ, maxCount })) {
      vector = new Map(vector).set(stream, { seq: event.seq, position: event.position });
      text += frameOf(deps, event, vector);
    }
    await deps.reached(vector, text);
  }
}

function frameOf({ feed, selection }: CatchUpDeps, event: StreamEvent, vector: CursorVector): string {
  feed.assertIsolated(event);
  const type = selection.typeOf(event);
  return type === undefined ? '' : eventFrame(event, type, feed.sealEntry(vector));
}

/** While the log is away the watcher stays, and goes on when it returns. */
async function readPatiently(
  { log, isClosed }: CatchUpDeps,
  stream: bigint,
  after: LogPoint,
  limits: ReadLimits,
): Promise<readonly StreamEvent[]> {
  while (!isClosed()) {
    try {
      const { events } = await log.read(stream, after, limits);
      if (events.length > 0) return events;
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'ServiceUnavailable') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return [];
}

async function finishStreams(deps: CatchUpDeps, from: CursorVector, closed: readonly bigint[]): Promise<void> {
  const { feed, log } = deps;
  const [ranges, streams] = await Promise.all([log.ranges(closed), feed.streamsOf(closed)]);
  let vector = from;
  for (const id of closed) {
    vector = await readTo(deps, vector, id, ranges.get(id)?.head ?? ORIGIN);
    const rest = new Map(vector);
    rest.delete(id);
    vector = rest;
    const tenant = streams.find((stream) => stream.id === id)?.tenant;
    await deps.reached(vector, tenant === undefined ? '' : tenantGoneFrame(tenant, feed.sealEntry(vector)));
  }
}
