/**
 * Who calls, and what of the store that caller may touch. Every store method takes a scope: a query without one cannot
 * be written.
 */

/** Public: users. Private: controllers. A token for one is refused by the other. */
export type Audience = 'public' | 'private';

export const ROLES = ['viewer', 'editor', 'controller', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** All tenants, also those yet to come, without some. */
export interface AllBut {
  /** Sorted, each once; at least one. */
  readonly allBut: readonly string[];
}

/** The tenants of a scope: `'*'` is the open set of all tenants, also of those yet to come. */
export type TenantSet = '*' | AllBut | readonly string[];
/** What a token grants, whatever is blocked of it. */
export type GrantedTenants = Exclude<TenantSet, AllBut>;

/** The part of the store that a call may see. */
export interface Scope {
  readonly tenants: TenantSet;
}

/** An authenticated caller. Its tenants are those that its token names: where it may write. See also `visibleTo`. */
export interface Caller extends Scope {
  readonly audience: Audience;
  readonly subject: string;
  /** The token's `jti`, when it has one. */
  readonly tokenId?: string;
  /** The token's `kid`: the key that it was signed with, when it names one. */
  readonly keyId?: string;
  readonly roles: readonly Role[];
  /** When the token ends, in milliseconds since the epoch; streams end with it. */
  readonly expiresAtMs: number;
  /** What a block takes from it: of these tenants it sees nothing, and they are not among `tenants`. See `narrowCaller`. */
  readonly blockedTenants?: readonly string[];
}

/** The tenant that owns cluster-scoped objects. */
export const SYSTEM_TENANT = 'system';

/** The tenant that everybody may read. */
export const SHARED_TENANT = 'shared';

/** They are in every installation, and cannot be deleted. */
export const BUILT_IN_TENANTS: readonly string[] = [SYSTEM_TENANT, SHARED_TENANT];

/** What a caller may read: the tenants of its token, and the shared one, without those that are blocked. Sorted, each once. */
export function visibleTo({ tenants, blockedTenants = [] }: Caller): Scope {
  if (isOpenSet(tenants)) return { tenants };
  const visible = new Set([...tenants, SHARED_TENANT]);
  return { tenants: [...visible].filter((name) => !blockedTenants.includes(name)).toSorted() };
}

/**
 * What a caller may read but for blocks. Cursors over all that is visible are bound to this, so that they stay good when a
 * tenant is blocked and when it is seen again.
 */
export function grantedTo({ tenants, blockedTenants = [] }: Caller): { readonly tenants: GrantedTenants } {
  if (isOpenSet(tenants)) return { tenants: '*' };
  return { tenants: [...new Set([...tenants, ...blockedTenants, SHARED_TENANT])].toSorted() };
}

/** Whether tenants that are yet to come can be in the set without being named by it. */
export function isOpenSet(tenants: TenantSet): tenants is '*' | AllBut {
  return tenants === '*' || 'allBut' in tenants;
}

/** Whether a scope includes a tenant. `system` is included in the open sets only, or by name. */
export function seesTenant({ tenants }: Scope, tenant: string): boolean {
  if (tenants === '*') return true;
  return 'allBut' in tenants ? !tenants.allBut.includes(tenant) : tenants.includes(tenant);
}

/** A scope cut down to some tenants; those that it does not include are left out. */
export function narrowScope(scope: Scope, tenants: readonly string[]): Scope {
  return { tenants: tenants.filter((tenant) => seesTenant(scope, tenant)) };
}

/** The one form of a set in JSON: equal for equal sets, in whatever order they name their tenants. */
export function canonicalTenants(tenants: TenantSet): TenantSet {
  if (tenants === '*') return tenants;
  if ('allBut' in tenants) return { allBut: [...new Set(tenants.allBut)].toSorted() };
  return [...new Set(tenants)].toSorted();
}
