/** The store of objects in PostgreSQL: its reads are here, its writes in `resource-writes.ts`. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { countAfter, listAtHead } from '#adapters/postgres/listing.ts';
import { dryRunWrites } from '#adapters/postgres/dry-run.ts';
import { isKey, shownColumns, storedColumns, subject } from '#adapters/postgres/resource-columns.ts';
import { resourceWrites } from '#adapters/postgres/resource-writes.ts';
import { readObjectQuota } from '#adapters/postgres/quotas.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { sessionsBeside } from '#adapters/postgres/session.ts';
import { snapshotAtHead } from '#adapters/postgres/snapshot.ts';
import { undoneBeside } from '#adapters/postgres/undone.ts';
import type { TurnsOptions } from '#adapters/postgres/turns.ts';
import type { Scope } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { ObjectQuota } from '#core/ports/tenant-limits.ts';
import type { ListPage, ListParams, ResourceStore, Snapshot } from '#core/ports/resources.ts';
import type { ResourceKey, ResourceRow } from '#core/resource.ts';

/** Snapshots are held for as long as clients take to read them. */
const SNAPSHOTS: TurnsOptions = { maxOpen: 16, maxPerOwner: 6, patienceMs: 2_000 };

/** @param snapshots how many may be open at once; each has a connection beside the pool. */
export function postgresResources(sql: Sql, snapshots: TurnsOptions = SNAPSHOTS): ResourceStore {
  const sessions = sessionsBeside(sql, snapshots);
  return {
    ...resourceWrites(sql),
    dryRun: dryRunWrites(undoneBeside(sql)),

    async get(scope: Scope, key: ResourceKey): Promise<ResourceRow | undefined> {
      return guarded(subject(key), async () => {
        const [row] = await scoped(sql, scope)<ResourceRow[]>`
          select ${shownColumns(sql)} from plumbline.resource r
          join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind where ${isKey(sql, scope, key)}`;
        return row;
      });
    },

    async getForUpdate(scope: Scope, key: ResourceKey): Promise<ResourceRow | undefined> {
      return guarded(subject(key), async () => {
        const [row] = await scoped(sql, scope)<ResourceRow[]>`
          select ${storedColumns(sql)} from plumbline.resource r where ${isKey(sql, scope, key)}`;
        return row;
      });
    },

    async list(scope: Scope, params: ListParams): Promise<ListPage> {
      return guarded(subject(params), () => listAtHead(scoped(sql, scope), scope, params));
    },

    async countAfter(
      scope: Scope,
      params: Pick<ListParams, 'group' | 'kind' | 'tenant' | 'after'>,
    ): Promise<number | undefined> {
      return guarded(subject(params), () => countAfter(scoped(sql, scope), scope, params));
    },

    async isBehindRetention(points: ReadonlyMap<bigint, LogPoint>): Promise<boolean> {
      return guarded('the start of the log', async () => {
        const entries = [...points];
        const [row] = await sql<{ isBehind: boolean }[]>`
          select exists (
            select from unnest(${entries.map(([stream]) => String(stream))}::bigint[],
              ${entries.map(([, { seq }]) => String(seq))}::bigint[]) p (stream, seq)
            join plumbline.frontier f on f.stream = p.stream and p.seq + 1 < f.first_seq) as "isBehind"`;
        return row?.isBehind === true;
      });
    },

    async quota(scope: Scope, tenant: string): Promise<ObjectQuota> {
      return readObjectQuota(sql, scope, tenant);
    },

    async newestVersion(): Promise<bigint> {
      return guarded('the newest version', async () => {
        const [row] = await sql<{ newest: string }[]>`
          select last_value::text as newest from plumbline.resource_version_seq`;
        return BigInt(row?.newest ?? 0);
      });
    },

    async snapshot(
      scope: Scope,
      kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
    ): Promise<Snapshot> {
      return snapshotAtHead(sessions, scope, kinds);
    },
  };
}
