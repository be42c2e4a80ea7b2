/** The directory's streams at one moment, for many feeds at once: each takes those of its tenants. */

import type { TenantSet } from '#core/identity.ts';
import type { Stream } from '#core/ports/streams.ts';

export interface StreamList {
  of(tenants: TenantSet): readonly Stream[];
}

export function createStreamList(all: readonly Stream[]): StreamList {
  const byTenant = Map.groupBy(all, ({ tenant }) => tenant);
  return {
    of: (tenants) => (tenants === '*' ? all : tenants.flatMap((tenant) => byTenant.get(tenant) ?? [])),
  };
}

/** The least set that holds all of these. */
export function unionOf(sets: readonly TenantSet[]): TenantSet {
  return sets.includes('*') ? '*' : [...new Set(sets.flat())];
}
