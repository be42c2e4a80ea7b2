/** An event that was delivered too often, as it is put aside. */

import { eventJson } from '#core/event-json.ts';
import type { EventType, StreamEvent } from '#core/event.ts';
import { pointOf } from '#core/ports/event-log.ts';
import type { DeadLetter } from '#core/ports/watch-groups.ts';
import type { Lane } from '#functions/watch/groups/lane.ts';

export type ParkedEvent = Omit<DeadLetter, 'id' | 'stream' | 'lane' | 'parkedAt'>;

export function parkedEvent(lane: Lane, event: StreamEvent, type: EventType): ParkedEvent {
  const delivery = lane.attributesAt(event.seq);
  const attempts = delivery.attempt - 1;
  return {
    point: pointOf(event),
    tenant: lane.tenant,
    event: eventJson(event, type, delivery),
    type,
    attempts,
    reason: `it was delivered ${attempts} times and not acked`,
  };
}
