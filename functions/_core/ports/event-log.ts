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
  /** The last published event. */
  readonly head: LogPoint;
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
   * Follows the log: calls back soon after a stream may have new events (naming it, or undefined when any may), and at
   * least every few seconds, until the signal aborts. It says only "look again"; reading is `read`'s. Survives the loss
   * of its connection.
   */
  onAppend(listener: (stream: bigint | undefined) => void, signal: AbortSignal): void;
}

/** The event after the requested point is gone. */
export class PositionExpired extends Error {
  override readonly name = 'PositionExpired';
  readonly stream: bigint;
  /** The oldest point that can still be read from. */
  readonly earliest: LogPoint;

  constructor(stream: bigint, earliest: LogPoint) {
    super(`stream ${stream}: the requested events were removed by retention; the oldest is seq ${earliest.seq + 1n}`);
    this.stream = stream;
    this.earliest = earliest;
  }
}
