/**
 * PORT. The event log: for each stream, its events in order. Adapters: PostgreSQL (`event_log`), Kafka (one topic of one
 * partition per stream).
 *
 * Contract: positions rise with seq inside a stream; seq is dense; what was read once is read again the same, until
 * retention removes it from the start. Errors are this file's; nothing of a driver leaks.
 */

import type { StreamEvent } from '#core/event.ts';

/** A place in a stream: everything up to and with `seq`, which lies at `position`. Both 0: before the first event. */
export interface LogPoint {
  readonly seq: bigint;
  readonly position: bigint;
}

/** Before the first event of every stream. */
export const ORIGIN: LogPoint = { seq: 0n, position: 0n };

/** Behind the event. */
export function pointOf({ seq, position }: StreamEvent): LogPoint {
  return { seq, position };
}

/** What a stream's log holds now. */
export interface LogRange {
  /** The point before the oldest event that is still there; the head when there is none. */
  readonly start: LogPoint;
  /** The last published event. Readers may be ahead of it: an event can be read before its batch is completed. */
  readonly head: LogPoint;
  /** The last number that was given to an event, which is published or about to be. No reader is ahead of it. */
  readonly assigned: bigint;
}

export interface ReadLimits {
  readonly maxCount: number;
  /** Bounds memory: the batch ends once its documents reach this size. At least one event is returned. */
  readonly maxBytes: number;
}

export interface ReadResult {
  readonly events: readonly StreamEvent[];
  /** The limits cut it short: there was more. */
  readonly more: boolean;
}

export interface EventLog {
  /** What these streams hold, in one snapshot. Unknown streams are left out. */
  ranges(streams: readonly bigint[]): Promise<ReadonlyMap<bigint, LogRange>>;

  /**
   * The events after a point, in order and without a gap; empty when there are none yet.
   * @throws {PositionExpired} when retention has removed the event after the point.
   */
  read(stream: bigint, after: LogPoint, limits: ReadLimits): Promise<ReadResult>;

  /**
   * The events after a point as they come, a batch of at least one at a time, in order and without a gap, until the
   * signal aborts: then it ends. Each batch is bounded, and made when the one before was taken. Survives the loss of its
   * connections; while the log is away it waits.
   * @throws {PositionExpired} as `read` does, when retention was faster.
   */
  tail(stream: bigint, after: LogPoint, signal: AbortSignal): AsyncIterable<readonly StreamEvent[]>;
}

/** The event after the requested point is gone: by retention, or with a topic that was lost. */
export class PositionExpired extends Error {
  override readonly name = 'PositionExpired';
  readonly stream: bigint;
  /** The oldest point that can still be read from. */
  readonly earliest: LogPoint;

  constructor(stream: bigint, earliest: LogPoint) {
    super(`stream ${stream}: the requested events are not kept any more; the next is seq ${earliest.seq + 1n}`);
    this.stream = stream;
    this.earliest = earliest;
  }
}
