/** Tenants as the API needs them: whether one exists, and the list for a caller that sees only some. */

import { SYSTEM_TENANT } from '#core/identity.ts';
import { TENANT_KIND } from '#core/kinds/tenant.ts';
import { matchesSelector } from '#core/label-selector.ts';
import type { ListPage, ListParams, ResourceStore } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

const SYSTEM_SCOPE = { tenants: [SYSTEM_TENANT] };
/** Tenants are read one by one: so many at a time. */
const READS_AT_ONCE = 8;

export async function tenantExists(store: ResourceStore, tenant: string): Promise<boolean> {
  return (await tenantObject(store, tenant)) !== undefined;
}

/**
 * The page of Tenant objects for a caller that names its tenants. It has no head: these objects lie in a stream that
 * the caller does not see as a whole, so no watch can take over from them.
 */
export async function listOwnTenants(
  store: ResourceStore,
  tenants: readonly string[],
  params: ListParams,
): Promise<ListPage> {
  const after = params.after?.name ?? '';
  const candidates = tenants
    .toSorted()
    .filter((name) => name > after && (params.name === undefined || params.name === name))
    .filter((name) => !params.except?.names.includes(name));
  const rows: ResourceRow[] = [];
  for (let start = 0; start < candidates.length && rows.length <= params.limit; start += READS_AT_ONCE) {
    const names = candidates.slice(start, start + READS_AT_ONCE);
    const found = await Promise.all(names.map((name) => tenantObject(store, name)));
    for (const row of found) if (row && matchesSelector(params.labels, labelsOf(row))) rows.push(row);
  }
  return { rows: rows.slice(0, params.limit), more: rows.length > params.limit };
}

function labelsOf(row: ResourceRow): Record<string, string> {
  return JSON.parse(row.labels) as Record<string, string>;
}

/** Undefined when there is none. */
export function tenantObject(store: ResourceStore, name: string): Promise<ResourceRow | undefined> {
  return store.get(SYSTEM_SCOPE, { tenant: SYSTEM_TENANT, ...TENANT_KIND, name });
}
