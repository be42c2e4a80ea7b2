/** A pass: some events of a stream, in order, are given to those of its lanes that are there and have room. */

import type { EventType, StreamEvent } from '#core/event.ts';
import { laneOf } from '#core/lane.ts';
import { pointOf } from '#core/ports/event-log.ts';
import type { Run } from '#functions/watch/tail/recent-events.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';

export interface PassDeps {
  readonly selection: Selection;
  /** Whether the client takes no more for now. */
  isFull(): boolean;
  /** Writes the event, or parks it, or leaves it for later: then the lane has no room. */
  deliver(lane: Lane, event: StreamEvent, type: EventType): void;
}

/**
 * Lanes that are further than an event have passed it; those that are not as far as the run's beginning have no part in
 * it. A lane that has no more room keeps its place; the others go on. Ends early when none has room, or the client is full.
 */
export function pass(deps: PassDeps, lanes: ReadonlyMap<number, Lane>, { after, events }: Run, nowMs: number): void {
  const open = new Set<Lane>();
  for (const lane of lanes.values()) if (lane.next.seq >= after && lane.hasRoom(nowMs)) open.add(lane);
  let reached: StreamEvent | undefined;
  const first = indexOfLeast(open, after);
  for (let index = first; index < events.length && open.size > 0 && !deps.isFull(); index += 1) {
    const event = events[index];
    if (!event) break;
    const lane = lanes.get(laneOf(event.subject.uid));
    if (lane && open.has(lane) && lane.next.seq < event.seq) {
      const type = deps.selection.typeOf(event);
      if (type !== undefined) {
        if (reached) lane.passTo(pointOf(reached));
        deps.deliver(lane, event, type);
        if (!lane.hasRoom(nowMs)) open.delete(lane);
        else if (lane.next.seq < event.seq) throw new Error(`lane ${lane.name}: seq ${event.seq} would be passed over`);
      }
    }
    reached = event;
  }
  if (reached) for (const lane of open) lane.passTo(pointOf(reached));
}

/** Where the furthest behind of them goes on. */
function indexOfLeast(lanes: ReadonlySet<Lane>, after: bigint): number {
  let least: bigint | undefined;
  for (const { next } of lanes) if (least === undefined || next.seq < least) least = next.seq;
  return least === undefined ? 0 : Number(least - after);
}
