/** Quotas of tenants in PostgreSQL, see sql/0021_quota.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { asRole } from '#adapters/postgres/as-role.ts';
import type { Scope } from '#core/identity.ts';
import type { Limits, ObjectQuota, ObjectUse, TenantLimits } from '#core/ports/tenant-limits.ts';

const LOOK_AGAIN_MS = 5_000;

/** What holds for tenants whose object says nothing; all servers share it, and the last one to start decides. */
export async function setObjectLimit(databaseUrl: string, objects: number): Promise<void> {
  await asRole(databaseUrl, { applicationName: 'plumbline quotas', role: 'plumbline_migrator' }, async (sql) => {
    await sql`update plumbline.quota_default set objects = ${objects} where objects is distinct from ${objects}`;
  });
}

/** What a tenant has of each kind, and what it may have. */
export async function readObjectQuota(sql: Sql, scope: Scope, tenant: string): Promise<ObjectQuota> {
  const rows = await guarded(
    'quota',
    () => scoped(sql, scope)<(ObjectUse & { readonly most: number | null })[]>`
      select k.api_group as "group", k.plural, sum(c.used)::float8 as used, most
      from plumbline.object_limit(${tenant}) most
      left join (plumbline.object_count c join plumbline.kind k on k.api_group = c.api_group and k.kind = c.kind)
        on c.tenant = ${tenant}
      group by k.api_group, k.plural, most order by k.api_group, k.plural`,
  );
  return {
    limit: rows[0]?.most ?? undefined,
    // A tenant without any has one row without a kind.
    uses: rows.flatMap(({ group, plural, used }) => (plural === null ? [] : [{ group, plural, used }])),
  };
}

interface LimitRow {
  readonly tenant: string;
  readonly requestsPerSecond: number | null;
  readonly watchers: number | null;
}

/**
 * Follows what Tenant objects say until the signal aborts. Resolves when they were read for the first time; while the
 * database is away, what was read last holds.
 * @param sql of a role that sees all tenants.
 * @param onError is told of readings that failed.
 * @throws {StatusError} ServiceUnavailable, of the first reading.
 */
export async function followTenantLimits(
  sql: Sql,
  defaults: Limits,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<TenantLimits> {
  let known = await readTenantLimits(sql, defaults);
  const timer = setInterval(() => void refresh(), LOOK_AGAIN_MS);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  return { default: defaults, of: (tenant) => known.get(tenant) ?? defaults };

  async function refresh(): Promise<void> {
    try {
      known = await readTenantLimits(sql, defaults);
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
  }
}

/** Of tenants whose object says something. @throws {StatusError} ServiceUnavailable. */
export async function readTenantLimits(sql: Sql, defaults: Limits): Promise<ReadonlyMap<string, Limits>> {
  const rows = await guarded(
    'quotas',
    () => sql<LimitRow[]>`
      select r.name as tenant, (r.spec #>> '{quota,requestsPerSecond}')::float8 as "requestsPerSecond",
        (r.spec #>> '{quota,watchers}')::float8 as watchers
      from plumbline.resource r
      where r.api_group = 'plumbline.dev' and r.kind = 'Tenant' and r.tenant = 'system' and r.spec ? 'quota'`,
  );
  return new Map(
    rows.map(({ tenant, requestsPerSecond, watchers }) => [
      tenant,
      {
        requestsPerSecond: requestsPerSecond ?? defaults.requestsPerSecond,
        watchers: watchers ?? defaults.watchers,
      },
    ]),
  );
}
