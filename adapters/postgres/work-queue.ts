/** The queue of passes in PostgreSQL; see sql/0009_work_item.sql and sql/0010_pass.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { createFinisher } from '#adapters/postgres/finisher.ts';
import { storedColumns } from '#adapters/postgres/resource-columns.ts';
import { resourceObject } from '#core/resource-json.ts';
import type {
  ClaimedPass,
  FinishOutcome,
  MappedTarget,
  PassEnd,
  WatchChange,
  WorkQueue,
} from '#core/ports/work-queue.ts';
import type { ResourceRow } from '#core/resource.ts';

export interface WorkQueueOptions {
  /** Names this process among all that claim. */
  readonly holder: string;
  /** How long a lease lasts without being renewed. */
  readonly leaseMs: number;
}

/** Of each class, for leases that may end without their pass: of more that are held, one ends within a lease's time. */
const LOOKED_AT = 100;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type ClaimRow = ResourceRow & Omit<ClaimedPass, 'row'>;

export function postgresWorkQueue(sql: Sql, { holder, leaseMs }: WorkQueueOptions): WorkQueue {
  const finish = createFinisher(sql);
  // Tenants take turns: the next claim begins behind the last one's.
  let lastTenant = '';

  return {
    async claim(controllers: readonly string[], limit: number): Promise<readonly ClaimedPass[]> {
      const rows = await guarded(
        'work queue',
        () => sql<ClaimRow[]>`
        with claimed as (
          select * from plumbline.claim_passes(${[...controllers]}::text[], ${holder},
            ${leaseMs} * interval '1 millisecond', ${limit}, ${lastTenant})
        )
        select c.controller, c.fencing_token as "fencingToken", c.was_abandoned as "wasAbandoned", c.lost_passes as "lostPasses", c.touches,
          c.attempts, c.item_class as "itemClass", ${storedColumns(sql)}
        from claimed c cross join lateral (select (c.object).*) r`,
      );
      lastTenant = rows.findLast((row) => row.itemClass < 2)?.tenant ?? lastTenant;
      return rows.map(toPass);
    },

    async renew(passes: readonly ClaimedPass[]): Promise<readonly string[]> {
      const rows = await guarded(
        'work queue',
        () => sql<{ uid: string }[]>`
        select uid from plumbline.renew_passes(${passes.map(({ row }) => row.uid)}::text[]::uuid[],
          ${passes.map(({ fencingToken }) => String(fencingToken))}::bigint[], ${leaseMs} * interval '1 millisecond') uid`,
      );
      return rows.map(({ uid }) => uid);
    },

    async finish(pass: ClaimedPass, end: PassEnd): Promise<FinishOutcome> {
      return guarded('the pass', () => finish(pass, end));
    },

    async release({ row, fencingToken }: ClaimedPass): Promise<void> {
      await guarded('the pass', () => sql`select plumbline.release_pass(${row.uid}, ${String(fencingToken)}::bigint)`);
    },

    async addFinalizer({ controller, row, fencingToken }: ClaimedPass): Promise<boolean> {
      const [answer] = await guarded(
        'the pass',
        () => sql<{ isThere: boolean }[]>`
        select plumbline.add_finalizer(${controller}, ${row.uid}, ${String(fencingToken)}::bigint) as "isThere"`,
      );
      return answer?.isThere ?? false;
    },

    async nextDueMs(controllers: readonly string[]): Promise<number | undefined> {
      const [row] = await guarded(
        'work queue',
        () => sql<{ ms: number | null }[]>`
        select (extract(epoch from min(due) - clock_timestamp()) * 1000)::float8 as ms
        from unnest(${[...controllers]}::text[]) c cross join lateral (
          select free.due_at from unnest(array[2, 3]) class cross join lateral (
            select w.due_at from plumbline.work_item w
            where w.controller = c and w.class = class and w.class >= 2
              and coalesce((select l.expires_at <= clock_timestamp() from plumbline.pass_lease l where l.uid = w.uid), true)
            order by w.due_at limit 1
          ) free
          union all
          select greatest(held.due_at, held.expires_at) from (
            select soon.due_at, (select l.expires_at from plumbline.pass_lease l where l.uid = soon.uid) as expires_at
            from (
              select w.uid, w.due_at from unnest(array[0, 1]) class cross join lateral (
                select uid, due_at from plumbline.work_item w
                where w.controller = c and w.class = class and w.class < 2 order by tenant, due_at limit ${LOOKED_AT}) w
              union all
              select w.uid, w.due_at from unnest(array[2, 3]) class cross join lateral (
                select uid, due_at from plumbline.work_item w
                where w.controller = c and w.class = class and w.class >= 2 order by due_at limit ${LOOKED_AT}) w
            ) soon
          ) held where held.expires_at > clock_timestamp()
        ) next (due)`,
      );
      return row?.ms == null ? undefined : Math.max(0, row.ms);
    },

    async watchChanges(controllers: readonly string[], limit: number): Promise<readonly WatchChange[]> {
      const rows = await guarded(
        'work queue',
        () => sql<(ResourceRow & { id: bigint; controller: string })[]>`
        select r.id, r.controller, ${storedColumns(sql)} from plumbline.watch_change r
        where r.controller = any (${[...controllers]}::text[]) and r.due_at <= now() order by r.id limit ${limit}`,
      );
      return rows.map((row) => ({
        id: row.id,
        controller: row.controller,
        tenant: row.tenant,
        object: resourceObject(row),
      }));
    },

    async postponeWatchChanges(changes: readonly WatchChange[], afterMs: number): Promise<void> {
      await guarded(
        'work queue',
        () => sql`
        select plumbline.postpone_watch_changes(${changes.map(({ id }) => String(id))}::bigint[],
          ${afterMs} * interval '1 millisecond')`,
      );
    },

    async finishWatchChanges(changes: readonly WatchChange[], targets: readonly MappedTarget[]): Promise<void> {
      // Arrays hold no nulls: what a target is not named by is empty.
      const text = (value: (target: MappedTarget['target']) => string | undefined): string[] =>
        targets.map(({ target }) => value(target) ?? '');
      await guarded(
        'work queue',
        () => sql`
        with wanted as (
          select t.*, c.api_group, c.kind
          from unnest(${targets.map(({ controller }) => controller)}::text[], ${targets.map(({ tenant }) => tenant)}::text[],
            ${text((target) => ('name' in target ? target.name : undefined))}::text[],
            ${text((target) => ('uid' in target && UUID.test(target.uid) ? target.uid : undefined))}::text[]) t (controller, tenant, name, uid)
          join plumbline.controller c on c.name = t.controller
        ), named as (
          select w.controller, r.uid, r.tenant from wanted w join plumbline.resource r
            on r.api_group = w.api_group and r.kind = w.kind and r.tenant = w.tenant and r.name = w.name
          union
          select w.controller, r.uid, r.tenant from wanted w join plumbline.resource r
            on r.uid = nullif(w.uid, '')::uuid and r.api_group = w.api_group and r.kind = w.kind
        )
        select plumbline.finish_watch_changes(${changes.map(({ id }) => String(id))}::bigint[],
          array(select controller from named order by uid, controller), array(select uid from named order by uid, controller),
          array(select tenant from named order by uid, controller))`,
      );
    },
  };
}

function toPass(row: ClaimRow): ClaimedPass {
  const { controller, fencingToken, wasAbandoned, lostPasses, touches, attempts, itemClass, ...object } = row;
  return { controller, fencingToken, wasAbandoned, lostPasses, touches, attempts, itemClass, row: object };
}
