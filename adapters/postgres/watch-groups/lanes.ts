/** The lanes that members of watch groups hold, and how far they are. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { laneColumns, markColumns } from '#adapters/postgres/watch-groups/lane-columns.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { AssignedLane, HeldLane, LaneMark, Retry, WatchGroups } from '#core/ports/watch-groups.ts';

type Lanes = Pick<
  WatchGroups,
  'lanes' | 'versions' | 'withLanes' | 'confirmedPoints' | 'mark' | 'release' | 'beginAnew'
>;

type LaneRow = Omit<AssignedLane, 'confirmed' | 'retries'> & LogPoint;
type RetryRow = Retry & Omit<HeldLane, 'fence'>;
type GroupRow = { readonly group: bigint };
type PointRow = HeldLane & LogPoint;

export function groupLanes(sql: Sql): Lanes {
  return {
    async lanes(members: readonly bigint[]): Promise<readonly AssignedLane[]> {
      if (members.length === 0) return [];
      const ids = members.map(String);
      const [lanes, asked] = await guarded('watch groups', () =>
        Promise.all([
          sql<LaneRow[]>`
          select watch_group as "group", stream, lane, fence, member, tenant, confirmed_seq as seq,
            confirmed_position as position, delivered_before as "deliveredBefore", pause_ms as "pauseMs",
            is_wanted as "isWanted"
          from plumbline.lanes_of(${ids}::bigint[])`,
          sql<RetryRow[]>`
          select d.watch_group as "group", d.stream, d.lane, d.id, d.fence from plumbline.group_dead_letter d
          join plumbline.group_lane l on l.watch_group = d.watch_group and l.stream = d.stream and l.lane = d.lane
          where d.deliveries_left is not null and l.member = any (${ids}::bigint[]) order by d.id`,
        ]),
      );
      const retries = Map.groupBy(asked, laneKey);
      return lanes.map(({ seq, position, ...lane }) => ({
        ...lane,
        confirmed: { seq, position },
        retries: (retries.get(laneKey(lane)) ?? []).map(({ id, fence }) => ({ id, fence })),
      }));
    },

    async versions(groups: readonly bigint[]): Promise<ReadonlyMap<bigint, bigint>> {
      if (groups.length === 0) return new Map();
      const rows = await guarded(
        'watch groups',
        () => sql<(GroupRow & { readonly version: bigint })[]>`
        select id as "group", version from plumbline.watch_group
        where id = any (${groups.map(String)}::bigint[]) and ended_at = 'infinity'`,
      );
      return new Map(rows.map(({ group, version }) => [group, version]));
    },

    async withLanes(groups: readonly bigint[]): Promise<ReadonlySet<bigint>> {
      if (groups.length === 0) return new Set();
      const rows = await guarded(
        'watch groups',
        () => sql<GroupRow[]>`
        select g.id as "group" from plumbline.watch_group g where g.id = any (${groups.map(String)}::bigint[])
          and exists (select from plumbline.group_lane l where l.watch_group = g.id and l.lane = 0)`,
      );
      return new Set(rows.map(({ group }) => group));
    },

    async confirmedPoints(lanes: readonly HeldLane[]): ReturnType<WatchGroups['confirmedPoints']> {
      if (lanes.length === 0) return [];
      const held = laneColumns(lanes);
      const rows = await guarded(
        'watch groups',
        () => sql<PointRow[]>`
        select l.watch_group as "group", l.stream, l.lane, l.fence, l.confirmed_seq as seq, l.confirmed_position as position
        from unnest(${held.groups}::bigint[], ${held.streams}::bigint[], ${held.lanes}::bigint[], ${held.fences}::bigint[])
          h (watch_group, stream, lane, fence)
        join plumbline.group_lane l
          on l.watch_group = h.watch_group and l.stream = h.stream and l.lane = h.lane and l.fence = h.fence`,
      );
      return rows.map(({ seq, position, ...lane }) => ({ ...lane, confirmed: { seq, position } }));
    },

    async mark(marks: readonly LaneMark[]): Promise<void> {
      if (marks.length === 0) return;
      const m = markColumns(marks);
      await guarded(
        'watch groups',
        () => sql`
        select plumbline.mark_lanes(${m.groups}::bigint[], ${m.streams}::bigint[], ${m.lanes}::bigint[],
          ${m.fences}::bigint[], ${m.delivered}::bigint[], ${m.seqs}::bigint[], ${m.positions}::bigint[])`,
      );
    },

    async release(lanes: readonly HeldLane[]): Promise<void> {
      if (lanes.length === 0) return;
      const held = laneColumns(lanes);
      await guarded(
        'watch groups',
        () => sql`
        select plumbline.release_lanes(${held.groups}::bigint[], ${held.streams}::bigint[], ${held.lanes}::bigint[],
          ${held.fences}::bigint[])`,
      );
    },

    async beginAnew(lanes: readonly HeldLane[]): Promise<void> {
      if (lanes.length === 0) return;
      const held = laneColumns(lanes);
      await guarded(
        'watch groups',
        () => sql`
        select plumbline.begin_lanes_anew(${held.groups}::bigint[], ${held.streams}::bigint[], ${held.lanes}::bigint[],
          ${held.fences}::bigint[])`,
      );
    },
  };
}

function laneKey({ group, stream, lane }: { group: bigint; stream: bigint; lane: number }): string {
  return `${group}/${stream}/${lane}`;
}
