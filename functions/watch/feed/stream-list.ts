/** The directory's streams at one moment, for many feeds at once: each takes those of its tenants. */

import { isOpenSet, seesTenant, type TenantSet } from '#core/identity.ts';
import type { Stream } from '#core/ports/streams.ts';

export interface StreamList {
  of(tenants: TenantSet): readonly Stream[];
}

export function createStreamList(all: readonly Stream[]): StreamList {
  const byTenant = Map.groupBy(all, ({ tenant }) => tenant);
  return {
    of(tenants) {
      if (isOpenSet(tenants)) return all.filter(({ tenant }) => seesTenant({ tenants }, tenant));
      return tenants.flatMap((tenant) => byTenant.get(tenant) ?? []);
    },
  };
}

/** A set that holds all of these. */
export function unionOf(sets: readonly TenantSet[]): TenantSet {
  const names = new Set<string>();
  for (const tenants of sets) {
    if (isOpenSet(tenants)) return '*';
    for (const name of tenants) names.add(name);
  }
  return [...names];
}
