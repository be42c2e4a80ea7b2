/** What was kept of finalizers that were taken off by hand, in PostgreSQL; see sql/0023_forced_deletion.sql. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { inTenant } from '#adapters/postgres/resource-columns.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { isOpenSet, type Scope } from '#core/identity.ts';
import type { ForcedDeletion, ForcedDeletions } from '#core/ports/forced-deletions.ts';

export function postgresForcedDeletions(sql: Sql): ForcedDeletions {
  return {
    async list(scope: Scope, { tenant, before, limit }): Promise<readonly ForcedDeletion[]> {
      return guarded(
        'forced deletions',
        () => scoped(sql, scope)<ForcedDeletion[]>`
        select d.id, d.at, d.tenant, d.api_group as "group", d.kind, d.name, d.uid,
          d.removed_finalizers as "removedFinalizers", d.deletion_requested_at as "deletionRequestedAt",
          d.done_by as by, d.reason
        from plumbline.forced_deletion d
        where ${inTenant(sql, scope, tenant, sql`d.tenant`)} ${ofItsOwn(sql, scope)} ${before === undefined ? sql`` : sql`and d.id < ${before}`}
        order by d.id desc limit ${limit}`,
      );
    },
  };
}

/** Who sees single tenants sees nothing of earlier ones of their names. */
function ofItsOwn(sql: Sql, { tenants }: Scope): Fragment {
  if (isOpenSet(tenants)) return sql``;
  return sql`and exists (select from plumbline.stream s where s.id = d.stream and s.closed_at is null)`;
}
