/** Watch groups as those see them who look after them. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { tenantsText } from '#adapters/postgres/watch-groups/members.ts';
import type { GroupQuery, GroupState, LanePlace, LaneState, WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import type { GroupIdentity } from '#core/ports/watch-groups.ts';

type States = Pick<WatchGroupAdmin, 'list' | 'get' | 'laneStates'>;

interface StateRow extends Omit<GroupState, 'tenants' | 'failure' | 'idleSince' | 'oldestUnacked' | 'members'> {
  readonly failure: string | null;
  readonly failedAt: Date | null;
  readonly tenants: string;
  readonly idleSince: Date | null;
  readonly oldestUnacked: Date | null;
  readonly memberIds: readonly bigint[];
  readonly joinedAtMs: readonly bigint[];
  readonly memberLanes: readonly bigint[];
}

type LaneRow = Omit<LaneState, 'member' | 'unackedSince'> & {
  readonly member: bigint | null;
  readonly unackedSince: Date | null;
};

export function groupStates(sql: Sql): States {
  return {
    async list({ audience, tenants, owner }: GroupQuery, after: bigint, limit: number): Promise<readonly GroupState[]> {
      const rows = await guarded(
        'watch groups',
        () => scoped(sql, { tenants })<StateRow[]>`
        select ${stateColumns(sql)} from plumbline.watch_group g where g.audience = ${audience} and g.ended_at = 'infinity'
          ${owner === undefined ? sql`` : sql`and g.owner = ${owner}`}
          ${
            tenants === '*'
              ? sql``
              : sql`and g.tenants <> '*' and string_to_array(g.tenants, ',') <@ ${[...tenants]}::text[]`
          }
          and g.id > ${String(after)}::bigint
        order by g.id limit ${limit}`,
      );
      return rows.map(toState);
    },

    async get({ audience, tenants, owner, name }: GroupIdentity): Promise<GroupState | undefined> {
      const [row] = await guarded(
        'watch groups',
        () => scoped(sql, { tenants })<StateRow[]>`
        select ${stateColumns(sql)} from plumbline.watch_group g where g.audience = ${audience} and g.owner = ${owner}
          and g.name = ${name} and g.tenants = ${tenantsText(tenants)} and g.ended_at = 'infinity'`,
      );
      return row && toState(row);
    },

    async laneStates(group: bigint, after: LanePlace, limit: number): Promise<readonly LaneState[]> {
      const rows = await guarded(
        'watch groups',
        () => sql<LaneRow[]>`
        select l.stream, s.tenant, l.lane, m.id as member,
          l.confirmed_seq as "confirmedSeq", ${streamLag(sql)} as "streamLag", l.unacked_since as "unackedSince"
        from plumbline.group_lane l join plumbline.stream s on s.id = l.stream
        join plumbline.frontier f on f.stream = l.stream
        left join plumbline.group_member m on m.id = l.member and m.expires_at > clock_timestamp()
        where l.watch_group = ${String(group)}::bigint
          and (l.stream, l.lane) > (${String(after.stream)}::bigint, ${after.lane}::smallint)
        order by l.stream, l.lane limit ${limit}`,
      );
      return rows.map((row) => ({
        ...row,
        member: row.member ?? undefined,
        unackedSince: row.unackedSince ?? undefined,
      }));
    },
  };
}

/** Of a lane `l` and its stream's frontier `f`: what is gone from the log does not count. */
function streamLag(sql: Sql): Fragment {
  return sql`greatest(0, f.last_seq - greatest(l.confirmed_seq, f.first_seq - 1))`;
}

/** Of a group `g`. */
function stateColumns(sql: Sql): Fragment {
  const members = (column: Fragment): Fragment => sql`array(
    select ${column} from plumbline.group_member m
    where m.watch_group = g.id and m.expires_at > clock_timestamp() order by m.id)`;
  return sql`g.id as "group", g.audience, g.tenants, g.owner, g.name, g.selection, g.failure, g.failed_at as "failedAt", g.created_at as "createdAt",
    -- Nobody may have noted yet that the last member has expired.
    coalesce(g.idle_since, (select max(m.expires_at) from plumbline.group_member m where m.watch_group = g.id
      having max(m.expires_at) <= clock_timestamp())) as "idleSince",
    ${members(sql`m.id`)} as "memberIds",
    ${members(sql`floor(extract(epoch from m.joined_at) * 1000)::bigint`)} as "joinedAtMs",
    ${members(sql`(select count(*) from plumbline.group_lane l where l.member = m.id)`)} as "memberLanes",
    coalesce((select max(${streamLag(sql)}) from plumbline.group_lane l join plumbline.frontier f on f.stream = l.stream
      where l.watch_group = g.id), 0) as "streamLag",
    (select min(l.unacked_since) from plumbline.group_lane l where l.watch_group = g.id) as "oldestUnacked",
    (select count(*)::int4 from plumbline.group_dead_letter d where d.watch_group = g.id) as "deadLetters"`;
}

function toState({ memberIds, joinedAtMs, memberLanes, failure, failedAt, ...row }: StateRow): GroupState {
  return {
    ...row,
    tenants: row.tenants === '*' ? '*' : row.tenants.split(',').filter((tenant) => tenant !== ''),
    failure: failure !== null && failedAt ? { message: failure, at: failedAt } : undefined,
    idleSince: row.idleSince ?? undefined,
    oldestUnacked: row.oldestUnacked ?? undefined,
    members: memberIds.map((member, index) => ({
      member,
      joinedAt: new Date(Number(joinedAtMs[index])),
      lanes: Number(memberLanes[index]),
    })),
  };
}
