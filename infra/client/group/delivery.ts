/** What a member of a group is delivered. */

import type { Change, CloudEvent, PlumblineObject } from '#infra/client/objects.ts';
import type { Frame } from '#infra/client/stream.ts';

/** The lane that something was delivered on, and since when: what is delivered again has a higher fence. */
export interface LaneFence {
  /** Names a share of one tenant's objects. All changes of an object are on one. */
  readonly lane: string;
  readonly fence: bigint;
}

/** A change that is this member's to handle. */
export interface Delivery<Spec = Record<string, unknown>, Status = Record<string, unknown>> extends Omit<
  Change<Spec, Status>,
  'cursor'
> {
  readonly lane: string;
  /** 1 at first; beyond `maxAttempts` it becomes a dead letter. */
  readonly attempt: number;
}

/** What a frame brings for its lane. */
export interface LaneFrame extends LaneFence {
  /** Confirms it, and everything before it on its lane. */
  readonly token: string;
  /** An earlier event, which was a dead letter and is delivered again: it is confirmed alone. */
  readonly isDeadLetter: boolean;
}

type GroupEvent<Spec, Status> = CloudEvent<PlumblineObject<Spec, Status>> & {
  readonly lane: string;
  readonly fence: string;
  readonly attempt: number;
  readonly deadletter?: string;
};

export function deliveryOf<Spec, Status>({ type, id = '', data }: Frame): LaneFrame & Delivery<Spec, Status> {
  const event = data as GroupEvent<Spec, Status>;
  return {
    type: type as Change['type'],
    object: event.data,
    event,
    lane: event.lane,
    fence: BigInt(event.fence),
    attempt: event.attempt,
    token: id,
    isDeadLetter: event.deadletter !== undefined,
  };
}
