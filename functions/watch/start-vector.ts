/** Where a watch begins, and when it must be refused. */

import type { CursorVector } from '#core/cursor.ts';
import type { TenantSet } from '#core/identity.ts';
import type { EventLog, LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';
import { StatusError } from '#core/status-error.ts';

export interface StartDeps {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
}

const ORIGIN: LogPoint = { seq: 0n, position: 0n };

/** The heads of the streams now: both of two watchers that begin here get all that comes and nothing that was. */
export async function headVector({ log, streams }: StartDeps, tenants: TenantSet): Promise<CursorVector> {
  const ranges = await openRanges({ log, streams }, tenants);
  return new Map([...ranges].map(([id, { head }]) => [id, head]));
}

/** Before the oldest events that are kept. */
export async function earliestVector({ log, streams }: StartDeps, tenants: TenantSet): Promise<CursorVector> {
  const ranges = await openRanges({ log, streams }, tenants);
  return new Map([...ranges].map(([id, range]) => [id, range.start]));
}

/**
 * A cursor's points, once it is sure that the next event of every stream is the one behind them. Streams that it does
 * not have were empty or not there when it was given: they begin at their beginning.
 * @param seal makes the cursor that an expired one is answered with.
 * @throws {StatusError} Expired; StreamRecreated when a tenant was deleted and made again, or the log is not the same.
 */
export async function resumeVector(
  { log, streams }: StartDeps,
  tenants: TenantSet,
  cursor: CursorVector,
  seal: (vector: CursorVector) => string,
): Promise<CursorVector> {
  const listed = await streams.list({ tenants }, [...cursor.keys()]);
  assertSameStreams(tenants, cursor, listed);
  const ranges = await log.ranges(listed.map((stream) => stream.id));
  const vector = new Map<bigint, LogPoint>();
  const earliest = new Map<bigint, LogPoint>();
  for (const { id } of listed) {
    const point = cursor.get(id) ?? ORIGIN;
    const range = ranges.get(id) ?? { start: ORIGIN, head: ORIGIN };
    if (point.seq > range.head.seq) throw recreated('the log does not reach as far as this cursor');
    vector.set(id, point);
    earliest.set(id, point.seq < range.start.seq ? range.start : point);
  }
  if ([...vector].some(([id, point]) => earliest.get(id) !== point)) {
    throw new StatusError(
      'Expired',
      'the events behind this cursor were removed by retention; list and watch from the cursor of that list, or go on from details.cursor with a gap',
      { details: { cursor: seal(earliest) } },
    );
  }
  return vector;
}

function assertSameStreams(tenants: TenantSet, cursor: CursorVector, listed: readonly Stream[]): void {
  const known = new Map(listed.map((stream) => [stream.id, stream]));
  for (const id of cursor.keys()) {
    const stream = known.get(id);
    // Who watches all tenants sees the old stream end and the new one begin.
    if (!stream || (stream.closed && tenants !== '*')) throw recreated('the tenant of this cursor was deleted');
  }
}

function recreated(fact: string): StatusError {
  return new StatusError('StreamRecreated', `${fact}; list and watch from the cursor of that list`);
}

async function openRanges({ log, streams }: StartDeps, tenants: TenantSet): Promise<ReadonlyMap<bigint, LogRange>> {
  const listed = await streams.list({ tenants });
  return log.ranges(listed.map((stream) => stream.id));
}
