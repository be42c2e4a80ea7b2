/** Where a point of a stream lies in its topic, by what the index knows. */

import type { LogPoint } from '#core/ports/event-log.ts';
import { PositionExpired } from '#core/ports/event-log.ts';
import type { IndexedStream } from '#core/ports/log-index.ts';

/**
 * The offset to read from, to get what is behind the point.
 * @throws {PositionExpired} when the event behind it is gone.
 */
export function offsetBehind(stream: bigint, point: LogPoint, indexed: IndexedStream): bigint {
  const { firstSeq, start } = indexed;
  const beforeTopic = firstSeq - 1n;
  if (point.seq < start.seq || point.seq < beforeTopic) throw new PositionExpired(stream, start);
  // Its position is one of the topic before.
  if (point.seq === beforeTopic) return 0n;
  // Repetitions may lie between an event and the start behind it.
  const isStart = point.seq === start.seq && start.position > point.position;
  return (isStart ? start.position : point.position) + 1n;
}
