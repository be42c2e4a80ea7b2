/** What tenants may use: the variables that say so, and what holds them to it. */

import type { MiddlewareHandler } from 'hono';
import * as v from 'valibot';
import type { Metrics } from '#adapters/node/metrics.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { followTenantLimits } from '#adapters/postgres/quotas.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { Limits } from '#core/ports/tenant-limits.ts';
import { createWatchPlaces, type WatchPlaces } from '#functions/watch/watch-places.ts';
import type { HttpEnv } from '#http/app.ts';
import { limitRequests } from '#http/limit-requests.ts';

/** The first three for tenants whose object says nothing else. */
export interface LimitsConfig {
  /** Of each kind. */
  readonly tenantObjects: number;
  /** To this process. */
  readonly tenantRequestsPerSecond: number;
  /** At this process. */
  readonly tenantWatchers: number;
  /** Of all tenants, at this process. */
  readonly maxWatchers: number;
}

type LimitVariable = 'TENANT_OBJECTS' | 'TENANT_REQUESTS_PER_SECOND' | 'TENANT_WATCHERS' | 'MAX_WATCHERS';

/** Entries of a `v.object`. */
export function limitVariables(): Record<LimitVariable, v.GenericSchema<string | undefined, number>> {
  return {
    TENANT_OBJECTS: v.optional(count('objects of a kind'), '200000'),
    TENANT_REQUESTS_PER_SECOND: v.optional(count('requests per second'), '1000'),
    TENANT_WATCHERS: v.optional(count('open watches'), '2000'),
    MAX_WATCHERS: v.optional(count('open watches'), '20000'),
  };
}

export function limitsConfig(variables: Readonly<Record<LimitVariable, number>>): LimitsConfig {
  return {
    tenantObjects: variables.TENANT_OBJECTS,
    tenantRequestsPerSecond: variables.TENANT_REQUESTS_PER_SECOND,
    tenantWatchers: variables.TENANT_WATCHERS,
    maxWatchers: variables.MAX_WATCHERS,
  };
}

function count(what: string): v.GenericSchema<string, number> {
  const allowed = `${what} from 1 to 999999999`;
  return v.pipe(v.string(), v.regex(/^[1-9]\d{0,8}$/, allowed), v.transform(Number));
}

export interface LimitsDeps {
  readonly config: LimitsConfig;
  /** Of a role that sees all tenants. */
  readonly sql: Sql;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'refusedByLimit'>;
}

export interface OpenLimits {
  readonly places: WatchPlaces;
  /** For one listener: what controllers ask for uses up nothing of what users may. */
  forRequests(): MiddlewareHandler<HttpEnv>;
}

/** For tenants whose object says nothing else. */
export function defaultLimits({ tenantRequestsPerSecond, tenantWatchers }: LimitsConfig): Limits {
  return { requestsPerSecond: tenantRequestsPerSecond, watchers: tenantWatchers };
}

/** Follows what Tenant objects say until the signal aborts. */
export async function openLimits(
  { config, sql, logger, metrics }: LimitsDeps,
  signal: AbortSignal,
): Promise<OpenLimits> {
  const limits = await followTenantLimits(sql, defaultLimits(config), signal, (error) =>
    logger.warn({ err: error }, 'quotas of tenants cannot be read; those from before hold'),
  );
  const onRefused = (limit: 'requests' | 'watchers') => () => metrics.refusedByLimit.inc({ limit });
  return {
    places: createWatchPlaces({ limits, maxWatchers: config.maxWatchers, onRefused: onRefused('watchers') }),
    forRequests: () => limitRequests({ limits, onRefused: onRefused('requests') }),
  };
}
