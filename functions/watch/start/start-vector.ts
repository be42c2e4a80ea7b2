/** Where a watch begins, and when it must be refused. */

import { MAX_CURSOR_STREAMS, type CursorVector } from '#core/cursor.ts';
import { isOpenSet, type TenantSet } from '#core/identity.ts';
import { type EventLog, type LogPoint, ORIGIN } from '#core/ports/event-log.ts';
import type { Stream } from '#core/ports/streams.ts';
import { StatusError } from '#core/status-error.ts';
import { rangesBehind } from '#functions/watch/start/readable.ts';

/** The heads of the streams now: both of two watchers that begin here get all that comes and nothing that was. */
export async function headVector(log: EventLog, streams: readonly Stream[]): Promise<CursorVector> {
  const ranges = await log.ranges(streams.map((stream) => stream.id));
  return new Map([...ranges].map(([id, { head }]) => [id, head]));
}

/** Before the oldest events that are kept. */
export async function earliestVector(log: EventLog, streams: readonly Stream[]): Promise<CursorVector> {
  const ranges = await log.ranges(streams.map((stream) => stream.id));
  return new Map([...ranges].map(([id, range]) => [id, range.start]));
}

export interface ResumeParams {
  readonly tenants: TenantSet;
  readonly cursor: CursorVector;
  /** The open ones of these tenants, and those of the cursor. */
  readonly streams: readonly Stream[];
  /** Makes the cursor that an expired one is answered with. */
  readonly seal: (vector: CursorVector) => string;
}

/**
 * A cursor's points, once it is sure that the next event of every stream is the one behind them. Streams that it does
 * not have were empty or not there when it was given: they begin at their beginning.
 * @throws {StatusError} Expired; StreamRecreated when a tenant was deleted and made again, or the log is not the same;
 * Timeout when its points cannot be read yet.
 */
export async function resumeVector(
  log: EventLog,
  { tenants, cursor, streams, seal }: ResumeParams,
): Promise<CursorVector> {
  assertSameStreams(tenants, cursor, streams);
  const ranges = await rangesBehind(
    log,
    streams.map((stream) => stream.id),
    cursor,
  );
  const vector = new Map<bigint, LogPoint>();
  const earliest = new Map<bigint, LogPoint>();
  for (const { id, closed } of streams) {
    const range = ranges.get(id) ?? { start: ORIGIN, assigned: 0n };
    const asked = cursor.get(id) ?? ORIGIN;
    // Of a deleted tenant nothing is left to miss: that it is gone says all about what was in it.
    const point = closed && asked.seq < range.start.seq ? range.start : asked;
    if (point.seq > range.assigned) throw recreated('the log does not reach as far as this cursor');
    vector.set(id, point);
    earliest.set(id, point.seq < range.start.seq ? range.start : point);
  }
  if ([...vector].some(([id, point]) => earliest.get(id) !== point)) throw expired(earliest, seal);
  // Deleted tenants make room before new ones are begun, and those are begun at their beginning without a point too.
  return vector.size > MAX_CURSOR_STREAMS ? cursor : vector;
}

function assertSameStreams(tenants: TenantSet, cursor: CursorVector, streams: readonly Stream[]): void {
  const known = new Map(streams.map((stream) => [stream.id, stream]));
  for (const id of cursor.keys()) {
    const stream = known.get(id);
    // Who watches all tenants sees the old stream end and the new one begin.
    if (!stream || (stream.closed && !isOpenSet(tenants))) throw recreated('the tenant of this cursor was deleted');
  }
}

function expired(earliest: CursorVector, seal: (vector: CursorVector) => string): StatusError {
  const message = 'the events behind this cursor are not kept any more; list and watch from the cursor of that list';
  if (earliest.size > MAX_CURSOR_STREAMS) return new StatusError('Expired', message);
  return new StatusError('Expired', `${message}, or go on from details.cursor with a gap`, {
    details: { cursor: seal(earliest) },
  });
}

function recreated(fact: string): StatusError {
  return new StatusError('StreamRecreated', `${fact}; list and watch from the cursor of that list`);
}
