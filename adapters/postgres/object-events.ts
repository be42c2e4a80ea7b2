/** What controllers told, in PostgreSQL: written when a pass ends, see sql/0010_pass.sql. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { inTenant } from '#adapters/postgres/resource-columns.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { isOpenSet, type Scope, seesTenant, SYSTEM_TENANT } from '#core/identity.ts';
import type {
  EventCondition,
  EventField,
  EventListParams,
  EventPage,
  ObjectEvent,
  ObjectEvents,
} from '#core/ports/object-events.ts';

type EventRow = Omit<ObjectEvent, 'place'> & { readonly at: string };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function postgresObjectEvents(sql: Sql): ObjectEvents {
  const objectNamespace = sql`case when s.tenant = ${SYSTEM_TENANT} then null else s.tenant end`;
  const namespace = sql`coalesce(${objectNamespace}, t.name)`;
  const eventName = sql`(rtrim(left(e.name, 216), '-.') || '.' || e.id)`;
  const columns: Readonly<Record<EventField, Fragment>> = {
    'metadata.name': eventName,
    'metadata.namespace': namespace,
    'involvedObject.apiVersion': sql`e.api_group || '/' || e.version`,
    'involvedObject.kind': sql`e.kind`,
    'involvedObject.namespace': objectNamespace,
    'involvedObject.name': sql`e.name`,
    'involvedObject.uid': sql`e.uid::text`,
    reason: sql`e.reason`,
    type: sql`e.type`,
    source: sql`e.controller`,
    reportingComponent: sql`e.controller`,
  };

  return {
    async list(scope: Scope, { namespace: wanted, conditions, limit, after }: EventListParams): Promise<EventPage> {
      const isAfter = after
        ? sql`and (e.last_at, e.name collate "C", e.id) > (${after.at}::text::timestamptz, ${after.name}, ${after.id}::text::uuid)`
        : sql``;
      // The page first, then its columns: they cost more than to find it.
      const rows = await guarded(
        'events',
        () => scoped(sql, scope)<EventRow[]>`
          select e.id::text as id, ${eventName} as "eventName", e.namespace, e.api_group as "group", e.version, e.kind,
            e.name, e.uid::text as uid, e.tenant = ${SYSTEM_TENANT} as "isClusterScoped", e.controller, e.type, e.reason,
            e.message, e.count, e.first_at as "firstAt", e.last_at as "lastAt",
            to_char(e.last_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
          from (
            select e.*, ${namespace} as namespace
            from plumbline.object_event e
            -- Streams of earlier incarnations are closed, and what was told in them with them.
            join plumbline.stream s on s.id = e.stream and s.tenant = e.tenant and s.closed_at is null
            -- A Tenant while it lives: another one of its name has another uid.
            left join plumbline.resource t on s.tenant = ${SYSTEM_TENANT} and e.api_group = 'plumbline.dev'
              and e.kind = 'Tenant' and t.uid = e.uid
            where ${wanted === undefined ? isVisible(scope) : isIn(scope, wanted)}
              ${conditions.reduce((all, condition) => sql`${all} and ${holds(condition)}`, sql``)} ${isAfter}
            order by e.last_at, e.name collate "C", e.id limit ${limit + 1}
          ) e order by e.last_at, e.name collate "C", e.id`,
      );
      return { events: rows.slice(0, limit).map(toEvent), more: rows.length > limit };
    },
  };

  /** Of two conditions the first is for the index of streams; the second decides. */
  function isVisible({ tenants }: Scope): Fragment {
    if (isOpenSet(tenants)) return inTenant(sql, { tenants }, undefined, sql`coalesce(${namespace}, s.tenant)`);
    const streams = { tenants: [...tenants, SYSTEM_TENANT] };
    const decides = seesTenant({ tenants }, SYSTEM_TENANT)
      ? sql`true`
      : inTenant(sql, { tenants }, undefined, namespace);
    return sql`${inTenant(sql, streams, undefined, sql`s.tenant`)} and ${decides}`;
  }

  function isIn(scope: Scope, wanted: string): Fragment {
    return sql`s.tenant in (${wanted}, ${SYSTEM_TENANT}) and ${inTenant(sql, scope, wanted, namespace)}`;
  }

  function holds({ field, is, value }: EventCondition): Fragment {
    const isEqual = sql`coalesce(${columns[field]}, '') = ${value}`;
    if (!is) return sql`not (${isEqual})`;
    const id = field === 'metadata.name' ? value.slice(-36) : value;
    if (field !== 'metadata.name' && field !== 'involvedObject.uid') return isEqual;
    if (!UUID.test(id)) return sql`false`;
    return field === 'metadata.name' ? sql`e.id = ${id}::uuid and ${isEqual}` : sql`e.uid = ${id}::uuid`;
  }
}

function toEvent({ at, ...row }: EventRow): ObjectEvent {
  return { ...row, place: { at, name: row.name, id: row.id } };
}
