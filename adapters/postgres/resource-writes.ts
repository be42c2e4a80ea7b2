/**
 * The writes of objects. Each is one statement that carries its own preconditions; the triggers of `sql/0003_resource.sql`
 * hold what no writer may bypass.
 */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { isKey, shownColumns, subject } from '#adapters/postgres/resource-columns.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { holds, judge, toRemoval, type WrittenRow } from '#adapters/postgres/write-outcome.ts';
import type { PropagationPolicy } from '#core/delete-options.ts';
import { type Scope, seesTenant } from '#core/identity.ts';
import type {
  DesiredState,
  ForcedDeed,
  NewResource,
  Preconditions,
  Removal,
  Reporter,
  ResourceWrites,
} from '#core/ports/resources.ts';
import type { ResourceKey, ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** @param sql a pool, or the connection of a transaction that serves the scopes of the writes. */
export function resourceWrites(sql: Sql): ResourceWrites {
  return {
    async create(scope: Scope, resource: NewResource): Promise<ResourceRow> {
      if (!seesTenant(scope, resource.tenant)) {
        throw new StatusError('NotFound', `tenant "${resource.tenant}" does not exist`);
      }
      return guarded(subject(resource), async () => {
        // uid, versions and times are the triggers'; the columns need no value here.
        const [row] = await scoped(sql, scope)<ResourceRow[]>`
          with r as (
            insert into plumbline.resource (tenant, api_group, kind, name, finalizers, labels, annotations,
              owner_references, spec)
            values (${resource.tenant}, ${resource.group}, ${resource.kind}, ${resource.name},
              ${[...resource.finalizers]}::text[], ${resource.labels}::text::jsonb,
              ${resource.annotations}::text::jsonb, ${resource.ownerReferences}::text::jsonb,
              ${resource.spec}::text::jsonb)
            returning *
          )
          select ${shownColumns(sql)} from r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind`;
        if (!row) throw new Error('insert returned no row');
        return row;
      });
    },

    async update(
      scope: Scope,
      key: ResourceKey,
      state: DesiredState,
      preconditions: Preconditions,
    ): Promise<ResourceRow> {
      return write(
        scope,
        key,
        preconditions,
        sql`finalizers = ${[...state.finalizers]}::text[], labels = ${state.labels}::text::jsonb,
          annotations = ${state.annotations}::text::jsonb, owner_references = ${state.ownerReferences}::text::jsonb,
          spec = ${state.spec}::text::jsonb`,
      );
    },

    async updateStatus(
      scope: Scope,
      key: ResourceKey,
      status: string,
      preconditions: Preconditions,
      reporter?: Reporter,
    ): Promise<ResourceRow> {
      if (reporter) return report(scope, key, status, preconditions, reporter);
      return write(
        scope,
        key,
        preconditions,
        sql`status = plumbline.stamp_conditions(t.status, ${status}::text::jsonb)`,
      );
    },

    async delete(
      scope: Scope,
      key: ResourceKey,
      preconditions: Preconditions,
      propagation?: PropagationPolicy,
    ): Promise<Removal> {
      const wanted = sql`plumbline.propagation_finalizers(t.finalizers, ${propagation ?? null}::text)`;
      const row = await guarded(subject(key), async () => {
        const [found] = await scoped(sql, scope)<WrittenRow[]>`
          with target as (select * from plumbline.resource r where ${isKey(sql, scope, key)} for update),
          gone as (
            delete from plumbline.resource r using target t
            where r.uid = t.uid and t.finalizers = '{}' and ${wanted} = '{}' and ${holds(sql, preconditions)} returning r.*
          ),
          -- One whose last finalizers the policy takes off goes with this update.
          marked as (
            update plumbline.resource r set deletion_timestamp = clock_timestamp(), finalizers = ${wanted} from target t
            where r.uid = t.uid and not (t.finalizers = '{}' and ${wanted} = '{}')
              and (t.deletion_timestamp is null or t.finalizers <> ${wanted})
              and ${holds(sql, preconditions)} returning r.*
          ),
          done as (
            select 'gone' as outcome, * from gone union all
            select case when finalizers = '{}' then 'gone' else 'marked' end, * from marked union all
            select 'kept', * from target where not exists (select from gone) and not exists (select from marked)
          )
          select r.outcome, ${shownColumns(sql)}
          from done r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind`;
        return found;
      });
      return toRemoval(judge(row, key, preconditions));
    },

    async forceDelete(
      scope: Scope,
      key: ResourceKey,
      preconditions: Preconditions,
      { finalizers, by, reason }: ForcedDeed,
    ): Promise<Removal> {
      const row = await guarded(subject(key), async () => {
        const [found] = await scoped(sql, scope)<WrittenRow[]>`
          with target as (select * from plumbline.resource r where ${isKey(sql, scope, key)} for update),
          forced as (
            select f.* from target t cross join lateral plumbline.force_delete(
              t.uid, ${finalizers ? [...finalizers] : null}::text[], ${by}, ${reason}) f where ${holds(sql, preconditions)}
          ),
          done as (
            select case when finalizers = '{}' then 'gone' else 'marked' end as outcome, * from forced union all
            select 'kept', * from target where not exists (select from forced)
          )
          select r.outcome, ${shownColumns(sql)}
          from done r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind`;
        return found;
      });
      return toRemoval(judge(row, key, preconditions));
    },
  };

  async function write(
    scope: Scope,
    key: ResourceKey,
    preconditions: Preconditions,
    assignments: Fragment,
  ): Promise<ResourceRow> {
    const row = await guarded(subject(key), async () => {
      const [found] = await scoped(sql, scope)<WrittenRow[]>`
        with target as (select * from plumbline.resource r where ${isKey(sql, scope, key)} for no key update),
        written as (
          update plumbline.resource r set ${assignments} from target t
          where r.uid = t.uid and ${holds(sql, preconditions)} returning r.*
        ),
        done as (
          select 'written' as outcome, * from written union all
          select 'kept', * from target where not exists (select from written)
        )
        select r.outcome, ${shownColumns(sql)}
        from done r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind`;
      return found;
    });
    return judge(row, key, preconditions);
  }

  /** See `sql/0024_report_status.sql`. It is called for a row that is locked and whose preconditions hold, or not at all. */
  async function report(
    scope: Scope,
    key: ResourceKey,
    status: string,
    preconditions: Preconditions,
    { controller, fencingToken }: Reporter,
  ): Promise<ResourceRow> {
    const row = await guarded(subject(key), async () => {
      const [found] = await scoped(sql, scope)<WrittenRow[]>`
        with target as materialized (
          select r as object from plumbline.resource r where ${isKey(sql, scope, key)} for no key update
        ),
        held as materialized (
          select t.object from (select (object).*, object from target) t where ${holds(sql, preconditions)}
        ),
        reported as materialized (
          select w.* from held cross join lateral plumbline.report_status(held.object, ${controller},
            ${fencingToken ?? null}::text::bigint, ${status}::text::jsonb) w
        ),
        done as (
          select 'written' as outcome, (object).* from reported where not is_fenced union all
          select case when exists (select from reported) then 'fenced' else 'kept' end, (object).* from target
          where not exists (select from reported where not is_fenced)
        )
        select r.outcome, ${shownColumns(sql)}
        from done r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind`;
      return found;
    });
    return judge(row, key, preconditions, controller);
  }
}
