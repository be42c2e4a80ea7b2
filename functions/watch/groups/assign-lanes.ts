/** Members are given the lanes that the database says are theirs. */

import type { EventLog } from '#core/ports/event-log.ts';
import type { AssignedLane } from '#core/ports/watch-groups.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';

/** A member does not hold any lane of the stream any more, and handed none of them over. */
export interface Loss {
  readonly session: GroupSession;
  readonly stream: bigint;
  readonly tenant: string;
}

export interface Assigned {
  readonly losses: readonly Loss[];
  /** They hold no lane. */
  readonly resting: readonly GroupSession[];
}

/** All of them let go before any takes: no two members of one process hold a lane at once. */
export async function assignLanes(
  log: EventLog,
  sessions: readonly GroupSession[],
  assigned: readonly AssignedLane[],
): Promise<Assigned> {
  const byMember = Map.groupBy(assigned, ({ member }) => member);
  const lanesOf = ({ membership }: GroupSession): readonly AssignedLane[] => byMember.get(membership.member) ?? [];
  const unknown = new Set<bigint>();
  for (const session of sessions) {
    for (const each of lanesOf(session)) if (session.lanes.needsRange(each)) unknown.add(each.stream);
  }
  const ranges = unknown.size > 0 ? await log.ranges([...unknown]) : new Map();
  const losses: Loss[] = [];
  for (const session of sessions) {
    for (const { stream, tenant } of session.lanes.drop(lanesOf(session))) losses.push({ session, stream, tenant });
  }
  for (const session of sessions) session.take(lanesOf(session), ranges);
  return { losses, resting: sessions.filter((session) => !session.isClosed && lanesOf(session).length === 0) };
}
