/** What members of groups are sent beside events. What carries an id is confirmed by an ack of it. */

import { sseFrame } from '#core/sse.ts';
import { PROTOCOL } from '#functions/watch/frames.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';

export interface GrantedMembership {
  readonly tenants: '*' | readonly string[];
  readonly group: {
    readonly name: string;
    readonly member: string;
    readonly isNew: boolean;
    /** A group of this name was dropped then, because nobody came for long. */
    readonly droppedAt?: string;
  };
}

/** The handshake. */
export function groupReadyFrame({ tenants, group }: GrantedMembership): string {
  return sseFrame({ event: 'READY', data: JSON.stringify({ protocol: PROTOCOL, mode: 'group', tenants, group }) });
}

/** Sign of life. */
export function progressFrame(): string {
  return sseFrame({ event: 'BOOKMARK', data: JSON.stringify({ reason: 'Progress' }) });
}

/** Events of a lane are not kept any more: what they told is to be read from the state. */
export function resyncFrame({ tenant, name, held }: Lane, token: string): string {
  const data = JSON.stringify({ reason: 'ResyncRequired', tenant, lane: name, fence: String(held.fence) });
  return sseFrame({ event: 'BOOKMARK', id: token, data });
}
