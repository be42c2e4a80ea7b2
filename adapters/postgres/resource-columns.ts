/**
 * The columns of an object as the store reads them: documents as JSON text, secret paths left out, spelled as the fields
 * of `ResourceRow`.
 */

import type { Fragment, Sql } from '#adapters/postgres/client.ts';
import { type Scope, seesTenant } from '#core/identity.ts';
import type { SelectorRequirement } from '#core/label-selector.ts';
import type { ResourceKey } from '#core/resource.ts';

/** For a row `r` of resource or outbox, joined with its kind `k`. */
export function shownColumns(sql: Sql): Fragment {
  return sql`${identityColumns(sql)},
    case when k.redact = '{}' then r.spec else plumbline.redact('spec', r.spec, k.redact) end::text as spec,
    case when k.redact = '{}' then r.status else plumbline.redact('status', r.status, k.redact) end::text as status`;
}

/** The same with the secrets, or of a record whose secrets were left out at capture. */
export function storedColumns(sql: Sql): Fragment {
  return sql`${identityColumns(sql)}, r.spec::text as spec, r.status::text as status`;
}

function identityColumns(sql: Sql): Fragment {
  return sql`r.uid, r.tenant, r.api_group as "group", r.version, r.kind, r.name,
    r.resource_version::text as "resourceVersion", r.generation::int4 as generation,
    r.creation_timestamp as "creationTimestamp", r.deletion_timestamp as "deletionTimestamp", r.finalizers,
    r.labels::text as labels, r.annotations::text as annotations, r.owner_references::text as "ownerReferences"`;
}

/**
 * The columns of an outbox record `o` as its object was before it, in the order of table `resource`: what the log still
 * shows while the record is unpublished.
 */
export function columnsBefore(sql: Sql): Fragment {
  return sql`o.uid, o.tenant, o.api_group, o.version, o.kind, o.name, o.old_resource_version as resource_version,
    coalesce(o.old_generation, o.generation) as generation, o.creation_timestamp,
    case when o.deletion_requested then null else o.deletion_timestamp end as deletion_timestamp,
    coalesce(o.old_finalizers, o.finalizers) as finalizers, coalesce(o.old_labels, o.labels) as labels,
    coalesce(o.old_annotations, o.annotations) as annotations,
    coalesce(o.old_owner_references, o.owner_references) as owner_references,
    coalesce(o.old_spec, o.spec) as spec, coalesce(o.old_status, o.status) as status`;
}

/** The same columns of the current row `r`. */
export function columnsNow(sql: Sql): Fragment {
  return sql`r.uid, r.tenant, r.api_group, r.version, r.kind, r.name, r.resource_version, r.generation,
    r.creation_timestamp, r.deletion_timestamp, r.finalizers, r.labels, r.annotations, r.owner_references,
    r.spec, r.status`;
}

/**
 * One tenant, or all of the scope; nothing outside of it. One tenant is one comparison, decided here: beside `any (…)`
 * PostgreSQL 15 gives up the order of the index, and sorts the whole tenant for each page.
 */
export function inTenant(sql: Sql, scope: Scope, tenant: string | undefined, column: Fragment): Fragment {
  if (tenant !== undefined) return seesTenant(scope, tenant) ? sql`${column} = ${tenant}` : sql`false`;
  const { tenants } = scope;
  if (tenants === '*') return sql`true`;
  if ('allBut' in tenants) return sql`${column} <> all (${[...tenants.allBut]}::text[])`;
  return sql`${column} = any (${[...tenants]}::text[])`;
}

/** Names the row `r` of one object, as far as the scope has it. */
export function isKey(sql: Sql, scope: Scope, key: ResourceKey): Fragment {
  return sql`r.api_group = ${key.group} and r.kind = ${key.kind} and r.name = ${key.name}
    and ${inTenant(sql, scope, key.tenant, sql`r.tenant`)}`;
}

/** How messages call an object, or all of a kind. */
export function subject(about: { readonly kind: string; readonly name?: string }): string {
  return about.name === undefined ? about.kind : `${about.kind} "${about.name}"`;
}

/** `and …` for each requirement of a label selector, on the column `labels` of `r`. */
export function selectorCondition(sql: Sql, requirements: readonly SelectorRequirement[]): Fragment {
  return requirements.reduce(
    (condition, requirement) => sql`${condition} and ${oneRequirement(sql, requirement)}`,
    sql``,
  );
}

function oneRequirement(sql: Sql, { key, operator, values }: SelectorRequirement): Fragment {
  const label = sql`(r.labels ->> ${key}::text)`;
  switch (operator) {
    case 'In':
      return sql`${label} = any (${[...values]}::text[])`;
    case 'NotIn':
      return sql`coalesce(${label} <> all (${[...values]}::text[]), true)`;
    case 'Exists':
      return sql`${label} is not null`;
    case 'DoesNotExist':
      return sql`${label} is null`;
  }
}
