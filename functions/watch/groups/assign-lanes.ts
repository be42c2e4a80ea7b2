/** Members are given the lanes that the database says are theirs. */

import type { EventLog } from '#core/ports/event-log.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import type { AssignedLane } from '#core/ports/watch-groups.ts';
import type { GroupSession } from '#functions/watch/groups/session.ts';
import type { StreamReading } from '#functions/watch/groups/stream-reading.ts';

export interface AssignDeps {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
}

interface Loss {
  readonly session: GroupSession;
  readonly reading: StreamReading;
}

/**
 * All of them let go before any takes: no two members of one process hold a lane at once. Members of which the last lane
 * of a deleted tenant is done are told that it is gone.
 */
export async function assignLanes(
  { log, streams }: AssignDeps,
  sessions: readonly GroupSession[],
  assigned: readonly AssignedLane[],
): Promise<void> {
  const byMember = Map.groupBy(assigned, ({ member }) => member);
  const lanesOf = ({ membership }: GroupSession): readonly AssignedLane[] => byMember.get(membership.member) ?? [];
  const unknown = new Set<bigint>();
  for (const session of sessions) {
    for (const each of lanesOf(session)) if (session.lanes.needsRange(each)) unknown.add(each.stream);
  }
  const ranges = unknown.size > 0 ? await log.ranges([...unknown]) : new Map();
  const losses: Loss[] = [];
  for (const session of sessions) {
    for (const reading of session.lanes.drop(lanesOf(session))) losses.push({ session, reading });
  }
  for (const session of sessions) session.take(lanesOf(session), ranges);
  if (losses.length > 0) await tellGone(streams, losses);
}

/** The others of these streams went to other members. */
async function tellGone(streams: StreamDirectory, losses: readonly Loss[]): Promise<void> {
  const tenants = [...new Set(losses.map(({ reading }) => reading.tenant))];
  const open = new Set((await streams.list({ tenants })).map(({ id }) => id));
  for (const { session, reading } of losses) if (!open.has(reading.stream)) session.tellGone(reading.tenant);
}
