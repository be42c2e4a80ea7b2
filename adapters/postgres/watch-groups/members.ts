/** Members of watch groups and the lanes that they hold. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { laneColumns, markColumns } from '#adapters/postgres/watch-groups/lane-columns.ts';
import type { GrantedTenants } from '#core/identity.ts';
import type {
  GroupDeletion,
  AssignedLane,
  HeldLane,
  JoinRequest,
  LaneMark,
  Membership,
  Retry,
  WatchGroups,
} from '#core/ports/watch-groups.ts';

/** Of one owner. */
const MAX_GROUPS = 100;

type Members = Pick<
  WatchGroups,
  | 'join'
  | 'renew'
  | 'unsettled'
  | 'settle'
  | 'deletions'
  | 'lanes'
  | 'versions'
  | 'withLanes'
  | 'confirmedPoints'
  | 'mark'
  | 'release'
  | 'beginAnew'
  | 'noteFailure'
  | 'leave'
>;

type MembershipRow = Omit<Membership, 'droppedAt'> & { readonly droppedAt: Date | null };
type LaneRow = Omit<AssignedLane, 'confirmed' | 'retries'> & {
  readonly seq: bigint | null;
  readonly position: bigint | null;
};
type RetryRow = Retry & Omit<HeldLane, 'fence'>;
type GroupRow = { readonly group: bigint };
type PointRow = HeldLane & { readonly seq: bigint; readonly position: bigint };

export function groupMembers(sql: Sql): Members {
  return {
    async join({ audience, tenants, owner, name, selection, start, leaseMs }: JoinRequest): Promise<Membership> {
      const [row] = await guarded(
        `group "${name}"`,
        () => sql<MembershipRow[]>`
        select watch_group as "group", member, is_new as "isNew", lost_at as "droppedAt"
        from plumbline.join_group(${audience}, ${tenantsText(tenants)}, ${owner}, ${name}, ${selection},
          ${start === 'now'}, ${leaseMs} * interval '1 millisecond', ${MAX_GROUPS})`,
      );
      if (!row) throw new Error('join_group gave no row');
      return { ...row, droppedAt: row.droppedAt ?? undefined };
    },

    async deletions(groups: readonly bigint[]): Promise<readonly GroupDeletion[]> {
      return guarded(
        'watch groups',
        () => sql<GroupDeletion[]>`
        select watch_group as "group", done_by as by, reason from plumbline.group_action
        where watch_group = any (${groups.map(String)}::bigint[]) and deed = 'delete'`,
      );
    },

    async renew(members: readonly bigint[], leaseMs: number): Promise<readonly bigint[]> {
      if (members.length === 0) return [];
      const rows = await guarded(
        'watch groups',
        () => sql<{ member: bigint }[]>`
        select member from plumbline.renew_members(${members.map(String)}::bigint[],
          ${leaseMs} * interval '1 millisecond') member`,
      );
      return rows.map(({ member }) => member);
    },

    async unsettled(groups: readonly bigint[]): Promise<readonly bigint[]> {
      if (groups.length === 0) return [];
      const rows = await guarded(
        'watch groups',
        () => sql<GroupRow[]>`
        select watch_group as "group" from plumbline.unsettled_groups(${groups.map(String)}::bigint[]) watch_group`,
      );
      return rows.map(({ group }) => group);
    },

    settle,

    async lanes(members: readonly bigint[]): Promise<readonly AssignedLane[]> {
      if (members.length === 0) return [];
      const ids = members.map(String);
      const [lanes, asked] = await guarded('watch groups', () =>
        Promise.all([
          sql<LaneRow[]>`
          select l.watch_group as "group", l.stream, l.lane, l.fence, l.member, s.tenant, l.confirmed_seq as seq,
            l.confirmed_position as position, l.delivered_before as "deliveredBefore",
            greatest(0, extract(epoch from l.not_before - clock_timestamp()) * 1000)::float8 as "pauseMs",
            l.next_member is not null as "isWanted"
          from plumbline.group_member m join plumbline.group_lane l on l.member = m.id
          join plumbline.stream s on s.id = l.stream
          where m.id = any (${ids}::bigint[]) and m.expires_at > clock_timestamp()
          order by l.watch_group, l.stream, l.lane`,
          sql<RetryRow[]>`
          select d.watch_group as "group", d.stream, d.lane, d.id, d.fence from plumbline.group_dead_letter d
          join plumbline.group_lane l on l.watch_group = d.watch_group and l.stream = d.stream and l.lane = d.lane
          where d.deliveries_left is not null and l.member = any (${ids}::bigint[]) order by d.id`,
        ]),
      );
      const retries = Map.groupBy(asked, laneKey);
      return lanes.map(({ seq, position, ...lane }) => ({
        ...lane,
        confirmed: seq === null || position === null ? undefined : { seq, position },
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
          on l.watch_group = h.watch_group and l.stream = h.stream and l.lane = h.lane and l.fence = h.fence
        where l.confirmed_seq is not null`,
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

    async noteFailure(group: bigint, message: string): Promise<void> {
      await guarded(
        'watch group',
        () => sql`select plumbline.note_group_failure(${String(group)}::bigint, ${message})`,
      );
    },

    async leave(members: readonly bigint[], marks: readonly LaneMark[]): Promise<void> {
      if (members.length === 0) return;
      const m = markColumns(marks);
      const left = await guarded(
        'watch groups',
        () => sql<GroupRow[]>`
        select watch_group as "group" from plumbline.leave_groups(${members.map(String)}::bigint[],
          ${m.groups}::bigint[], ${m.streams}::bigint[], ${m.lanes}::bigint[], ${m.fences}::bigint[],
          ${m.delivered}::bigint[], ${m.seqs}::bigint[], ${m.positions}::bigint[]) watch_group`,
      );
      for (const { group } of left) await settle(group);
    },
  };

  async function settle(group: bigint): Promise<void> {
    await guarded('watch groups', () => sql`select plumbline.settle_due_group(${String(group)}::bigint)`);
  }
}

/** The canonical form that tells groups apart. */
export function tenantsText(tenants: GrantedTenants): string {
  return tenants === '*' ? '*' : [...new Set(tenants)].toSorted().join(',');
}

function laneKey({ group, stream, lane }: { group: bigint; stream: bigint; lane: number }): string {
  return `${group}/${stream}/${lane}`;
}
