/**
 * What a broker means that says "no such offset". It counts only when the topic's leader confirms it: a replica that is
 * behind says the same of offsets that are there.
 */

import { readExtents } from '#adapters/kafka/topics/extents.ts';
import type { Session } from '#adapters/kafka/client/session.ts';
import type { Place } from '#adapters/kafka/reading/tail-reader.ts';
import { type LogPoint, PositionExpired } from '#core/ports/event-log.ts';
import type { LogIndex } from '#core/ports/log-index.ts';

export interface Doubt {
  readonly session: Session;
  readonly index: LogIndex;
  readonly stream: bigint;
  readonly point: LogPoint;
  readonly place: Place;
}

/**
 * The offset to go on from; undefined when that cannot be said now: the topic has lost what it had, the index will tell.
 * What the log has removed the index is told.
 * @throws {PositionExpired} when the event behind the point is gone.
 * @throws what kafkajs throws, or the index.
 */
export async function findWayOn({ session, index, stream, point, place }: Doubt): Promise<bigint | undefined> {
  const { topic, offset } = place;
  const extent = (await readExtents(session, [topic])).get(topic);
  if (extent === undefined || extent === 'missing' || offset > extent.end) return undefined;
  if (offset >= extent.start) return offset;
  await index.advanceStart(topic, extent.start);
  const indexed = (await index.streams([stream])).get(stream);
  if (indexed?.topic !== topic) return undefined;
  if (point.seq < indexed.start.seq) throw new PositionExpired(stream, indexed.start);
  return extent.start;
}
