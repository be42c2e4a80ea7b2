/** An event that was delivered too often, as it becomes a dead letter. */

import { eventJson } from '#core/event-json.ts';
import type { EventType, StreamEvent } from '#core/event.ts';
import { pointOf } from '#core/ports/event-log.ts';
import type { Parking } from '#core/ports/watch-groups.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';

export function parkingOf(lane: Lane, event: StreamEvent, type: EventType): Parking {
  const attempts = lane.attemptAt(event.seq) - 1;
  return {
    point: pointOf(event),
    tenant: lane.tenant,
    event: eventJson(event, type),
    type,
    attempts,
    reason: `it was delivered ${attempts} times and not acked`,
  };
}
