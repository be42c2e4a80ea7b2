/** Groups as answers show them. Ids are text: they are numbers of any size. */

import type { JsonObject, JsonValue } from '#core/json.ts';
import type { GroupState, LanePlace, LaneState } from '#core/ports/watch-group-admin.ts';
import { type DeadLetter, MAX_DEAD_LETTERS } from '#core/ports/watch-groups.ts';

export function groupAnswer(group: GroupState): JsonObject {
  const { name, owner, tenants, selection, failure, createdAt, idleSince, members } = group;
  const { streamLag, oldestUnacked, deadLetters } = group;
  return {
    name,
    owner,
    tenants: tenants === '*' ? '*' : [...tenants],
    selection,
    ...(failure && { failure: { message: failure.message, at: failure.at.toISOString() } }),
    createdAt: createdAt.toISOString(),
    ...(idleSince && { idleSince: idleSince.toISOString() }),
    members: members.length,
    streamLag: Number(streamLag),
    ...(oldestUnacked && { oldestUnacked: oldestUnacked.toISOString() }),
    deadLetters,
    // Lanes that would have another one stand still.
    ...(deadLetters >= MAX_DEAD_LETTERS && { deadLettersFull: true }),
  };
}

export function membersAnswer({ members }: GroupState): JsonValue {
  return members.map(({ member, joinedAt, lanes }) => ({
    member: String(member),
    joinedAt: joinedAt.toISOString(),
    lanes,
  }));
}

export function laneAnswer(state: LaneState): JsonObject {
  const { tenant, member, confirmedSeq, streamLag, unackedSince } = state;
  return {
    lane: laneText(state),
    tenant,
    ...(member !== undefined && { member: String(member) }),
    confirmedSeq: String(confirmedSeq),
    streamLag: Number(streamLag),
    ...(unackedSince && { unackedSince: unackedSince.toISOString() }),
  };
}

export function deadLetterAnswer(deadLetter: DeadLetter): JsonObject {
  const { id, tenant, point, type, attempts, reason, parkedAt, event } = deadLetter;
  return {
    id: String(id),
    tenant,
    lane: laneText(deadLetter),
    seq: String(point.seq),
    type,
    attempts,
    reason,
    parkedAt: parkedAt.toISOString(),
    event: JSON.parse(event) as JsonValue,
  };
}

/** As in the events of the lane. */
export function laneText({ stream, lane }: LanePlace): string {
  return `${stream}.${lane}`;
}
