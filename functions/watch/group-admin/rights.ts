/**
 * Who may do what with a group. Its owner sees it while it sees all of its tenants; so does an admin of them, who may also
 * act on it. For everybody else it does not exist.
 */

import { seesTenant, SHARED_TENANT, visibleTo, type Caller, type GrantedTenants } from '#core/identity.ts';
import type { GroupIdentity } from '#core/ports/watch-groups.ts';
import { MissingRight } from '#http/authorize.ts';

type Owned = Pick<GroupIdentity, 'tenants' | 'owner' | 'name'>;

export function seesGroup(caller: Caller, { owner, tenants }: Owned): boolean {
  if (owner !== caller.subject) return isAdmin(caller) && hasTenants(caller, tenants);
  const visible = visibleTo(caller);
  return tenants === '*' ? visible.tenants === '*' : tenants.every((tenant) => seesTenant(visible, tenant));
}

/** Of a group that the caller sees. @throws {StatusError} Forbidden. */
export function assertMayAct(caller: Caller, { name }: Owned): void {
  if (isAdmin(caller)) return;
  const roles = caller.roles.length > 0 ? caller.roles.join(', ') : 'none';
  throw new MissingRight(
    `${JSON.stringify(caller.subject)} (roles: ${roles}) may not change the group "${name}": admins of its tenants do; ` +
      'its members move it by their acks',
    { details: { name } },
  );
}

function isAdmin({ roles }: Caller): boolean {
  return roles.includes('admin');
}

/** The tenant that everybody sees comes along with others; that alone makes nobody its admin. */
function hasTenants(caller: Caller, tenants: GrantedTenants): boolean {
  if (tenants === '*') return caller.tenants === '*';
  const named = tenants.filter((tenant) => tenant !== SHARED_TENANT);
  if (named.length === 0) return seesTenant(caller, SHARED_TENANT);
  return named.every((tenant) => seesTenant(caller, tenant));
}
