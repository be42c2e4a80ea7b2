/** Members of watch groups: they come, live and go, and their groups are settled. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { markColumns } from '#adapters/postgres/watch-groups/lane-columns.ts';
import type { GrantedTenants } from '#core/identity.ts';
import type {
  GroupDeletion,
  GroupIdentity,
  JoinRequest,
  LaneMark,
  Membership,
  WatchGroups,
} from '#core/ports/watch-groups.ts';

/** Of one owner. */
const MAX_GROUPS = 100;

type Members = Pick<
  WatchGroups,
  'exists' | 'join' | 'renew' | 'unsettled' | 'settle' | 'deletions' | 'noteFailure' | 'leave'
>;

type MembershipRow = Omit<Membership, 'droppedAt'> & { readonly droppedAt: Date | null };
type GroupRow = { readonly group: bigint };

export function groupMembers(sql: Sql): Members {
  return {
    async exists({ audience, tenants, owner, name }: GroupIdentity): Promise<boolean> {
      const text = tenantsText(tenants);
      const rows = await guarded(
        'watch groups',
        () => scoped(sql, { tenants })`
        select from plumbline.watch_group where audience = ${audience} and owner = ${owner} and name = ${name}
          and tenants = ${text} and sha256(tenants::bytea) = sha256(${text}::text::bytea) and ended_at = 'infinity'`,
      );
      return rows.length > 0;
    },

    async join({
      audience,
      tenants,
      owner,
      name,
      selection,
      start,
      blockedTenants = [],
      leaseMs,
    }: JoinRequest): Promise<Membership> {
      const [row] = await guarded(
        `group "${name}"`,
        () => sql<MembershipRow[]>`
        select watch_group as "group", member, is_new as "isNew", lost_at as "droppedAt"
        from plumbline.join_group(${audience}, ${tenantsText(tenants)}, ${owner}, ${name}, ${selection},
          ${start === 'now'}, ${[...blockedTenants]}::text[], ${leaseMs} * interval '1 millisecond', ${MAX_GROUPS})`,
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
