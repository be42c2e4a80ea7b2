/** The state of the store between passes: read by the kit, and moved on where real time would. */

import type { Sql } from '#adapters/postgres/client.ts';
import { type JsonObject, parseJson } from '#core/json.ts';
import { BUILT_IN_TENANTS } from '#core/identity.ts';
import type { ReportedCondition, ReportedResource } from '#core/ports/work-queue.ts';

export interface Work {
  /** Makes every timer, retry and resync due. */
  makeAllDue(): Promise<void>;
  /** Whether something is to be looked at again sooner than at its resync. */
  hasTimers(): Promise<boolean>;
  /** Leases of dead processes are over. */
  expireLeases(): Promise<void>;
  /** Changes when any object does. */
  versions(): Promise<string>;
  /** What the controllers say of every object, without what differs from run to run. By `Kind tenant/name`. */
  outcomes(): Promise<JsonObject>;
  /** `Kind tenant/name` of every object, by uid. */
  uids(): Promise<ReadonlyMap<string, string>>;
  /** Events of type Normal: why something changed. */
  normalEvents(): Promise<number>;
  /** Removes every object but the kit's own tenants, whatever finalizers they have. */
  clear(): Promise<void>;
}

interface OutcomeRow {
  readonly name: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: string[];
  readonly status: string;
}

/**
 * @param sql of a login that owns the schema.
 * @param tenants of the kit, which outlive a run, as the built-in ones do.
 */
export function kitWork(sql: Sql, tenants: readonly string[]): Work {
  const kept = [...BUILT_IN_TENANTS, ...tenants];
  const isTenant = sql`(api_group, kind) = ('plumbline.dev', 'Tenant')`;
  const objects = sql`from plumbline.resource where not (${isTenant} and name = any (${kept}::text[]))`;
  return {
    async makeAllDue() {
      await sql`update plumbline.work_item set due_at = clock_timestamp() where due_at > clock_timestamp()`;
    },
    async hasTimers() {
      const [row] = await sql`select from plumbline.work_item where class = 2 limit 1`;
      return row !== undefined;
    },
    async expireLeases() {
      await sql`update plumbline.pass_lease set expires_at = clock_timestamp() where expires_at > clock_timestamp()`;
    },
    async versions() {
      const [row] = await sql<{ versions: string | null }[]>`
        select string_agg(uid || ':' || resource_version, ',' order by uid) as versions from plumbline.resource`;
      return row?.versions ?? '';
    },
    async outcomes() {
      const rows = await sql<OutcomeRow[]>`
        select kind || ' ' || tenant || '/' || name as name, generation::int4 as generation,
          deletion_timestamp is not null as "isDeleting", finalizers, status::text as status ${objects} order by 1`;
      return Object.fromEntries(rows.map((row) => [row.name, outcomeOf(row)]));
    },
    async uids() {
      const rows = await sql<{ uid: string; name: string }[]>`
        select uid::text as uid, kind || ' ' || tenant || '/' || name as name from plumbline.resource`;
      return new Map(rows.map(({ uid, name }) => [uid, name]));
    },
    async normalEvents() {
      const [row] = await sql<{ count: number }[]>`
        select coalesce(sum(count), 0)::int4 as count from plumbline.object_event where type = 'Normal'`;
      return row?.count ?? 0;
    },
    async clear() {
      await sql`update plumbline.resource set finalizers = '{}'
        where uid in (select uid ${objects}) and finalizers <> '{}' and not ${isTenant}`;
      await sql`update plumbline.resource set finalizers = '{}' where uid in (select uid ${objects}) and finalizers <> '{}'`;
      await sql`delete from plumbline.resource where uid in (select uid ${objects}) and not ${isTenant}`;
      await sql`delete from plumbline.resource where uid in (select uid ${objects})`;
      await sql`delete from plumbline.watch_change`;
      await sql`delete from plumbline.object_event`;
    },
  };
}

function outcomeOf({ generation, isDeleting, finalizers, status }: OutcomeRow): JsonObject {
  const { observedGeneration = 0, conditions = [], resources = [] } = parseJson(status) as ReportedStatus;
  return {
    generation,
    observedGeneration,
    isDeleting,
    finalizers,
    conditions: Object.fromEntries(conditions.map((each) => [each.type, `${each.status} ${each.reason}`])),
    resources: resources.map((each) => `${each.class} ${each.id} ${each.state}`),
  };
}

/** The part of a status that the driver writes. */
interface ReportedStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly ReportedCondition[];
  readonly resources?: readonly ReportedResource[];
}
