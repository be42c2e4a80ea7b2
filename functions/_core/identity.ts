/**
 * Who calls, and what of the store that caller may touch. Every store method takes a scope: a query without one cannot
 * be written.
 */

/** Public: users. Private: controllers. A token for one is refused by the other. */
export type Audience = 'public' | 'private';

export const ROLES = ['viewer', 'editor', 'controller', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** The tenants of a scope: `'*'` is the open set of all tenants, also of those yet to come. */
export type TenantSet = '*' | readonly string[];

/** The part of the store that a call may see. */
export interface Scope {
  readonly tenants: TenantSet;
}

/** An authenticated caller. Its tenants are those that its token names: where it may write. See also `visibleTo`. */
export interface Caller extends Scope {
  readonly audience: Audience;
  readonly subject: string;
  readonly roles: readonly Role[];
  /** When the token ends, in milliseconds since the epoch; streams end with it. */
  readonly expiresAtMs: number;
}

/** The tenant that owns cluster-scoped objects. */
export const SYSTEM_TENANT = 'system';

/** The tenant that everybody may read. */
export const SHARED_TENANT = 'shared';

/** They are in every installation, and cannot be deleted. */
export const BUILT_IN_TENANTS: readonly string[] = [SYSTEM_TENANT, SHARED_TENANT];

/** What a caller may read: the tenants of its token, and the shared one. Sorted, each once. */
export function visibleTo({ tenants }: Caller): Scope {
  return { tenants: tenants === '*' ? '*' : [...new Set([...tenants, SHARED_TENANT])].toSorted() };
}

/** Whether a scope includes a tenant. `system` is included in the open set only, or by name. */
export function seesTenant(scope: Scope, tenant: string): boolean {
  return scope.tenants === '*' || scope.tenants.includes(tenant);
}

/** A scope cut down to some tenants; those that it does not include are left out. */
export function narrowScope(scope: Scope, tenants: readonly string[]): Scope {
  return { tenants: tenants.filter((tenant) => seesTenant(scope, tenant)) };
}
