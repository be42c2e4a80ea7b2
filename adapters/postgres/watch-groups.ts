/** Watch groups in PostgreSQL; see sql/0016_watch_group.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import { groupAcks } from '#adapters/postgres/watch-groups/acks.ts';
import { groupDeadLetters } from '#adapters/postgres/watch-groups/dead-letters.ts';
import { isDone } from '#adapters/postgres/watch-groups/is-done.ts';
import { groupLanes } from '#adapters/postgres/watch-groups/lanes.ts';
import { groupMembers } from '#adapters/postgres/watch-groups/members.ts';
import { groupStates } from '#adapters/postgres/watch-groups/states.ts';
import type { AdminAct, WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import { StatusError } from '#core/status-error.ts';

const CHANGE_FLOOR_MS = 2_000;

export function postgresWatchGroups(sql: Sql): WatchGroups & WatchGroupAdmin {
  return {
    ...groupMembers(sql),
    ...groupLanes(sql),
    ...groupAcks(sql),
    ...groupDeadLetters(sql),
    ...groupStates(sql),

    async seek(group: bigint, to: Parameters<WatchGroupAdmin['seek']>[1], { by, reason }: AdminAct): Promise<void> {
      const points = typeof to === 'string' ? [] : [...to];
      const isThere = await isDone(
        sql,
        'watch group',
        () => sql`
        plumbline.seek_group(${String(group)}::bigint, ${typeof to === 'string' ? to : 'points'},
          ${points.map(([stream]) => String(stream))}::bigint[], ${points.map(([, { seq }]) => String(seq))}::bigint[],
          ${points.map(([, { position }]) => String(position))}::bigint[], ${by}, ${reason})`,
      );
      if (!isThere) throw new StatusError('NotFound', 'the group was deleted');
    },

    async reset(group: bigint, { by, reason }: AdminAct): Promise<void> {
      const isThere = await isDone(
        sql,
        'watch group',
        () => sql`plumbline.reset_group(${String(group)}::bigint, ${by}, ${reason})`,
      );
      if (!isThere) throw new StatusError('NotFound', 'the group was deleted');
    },

    async delete(group: bigint, { by, reason }: AdminAct): Promise<boolean> {
      return isDone(sql, 'watch group', () => sql`plumbline.delete_group(${String(group)}::bigint, ${by}, ${reason})`);
    },

    async dropIdle(idleMs: number): Promise<number> {
      await untilNone(
        () => sql<Round[]>`
        select plumbline.settle_abandoned_groups() as count`,
      );
      return untilNone(
        () => sql<Round[]>`
        select plumbline.drop_idle_groups(${idleMs} * interval '1 millisecond') as count`,
      );
    },

    async forgetEnded(keptMs: number): Promise<number> {
      return untilNone(
        () => sql<Round[]>`
        select plumbline.forget_ended_groups(${keptMs} * interval '1 millisecond') as count`,
      );
    },

    onChange(listener: (group: bigint | undefined) => void, signal: AbortSignal): void {
      onNotification(
        sql,
        { channel: 'plumbline_watch_group', floorMs: CHANGE_FLOOR_MS },
        (payload) => listener(payload ? BigInt(payload) : undefined),
        signal,
      );
    },
  };
}

interface Round {
  readonly count: number;
}

/** Each round is a transaction of its own, so that nobody waits for all of them. Returns how many there were in all. */
async function untilNone(round: () => Promise<readonly Round[]>): Promise<number> {
  let total = 0;
  for (;;) {
    const [row] = await guarded('watch groups', round);
    if (!row || row.count === 0) return total;
    total += row.count;
  }
}
