/** What each role may do. What a caller may not see does not exist (404); what it sees and may not do is 403. */

import type { Caller, Role } from '#core/identity.ts';
import { resourceOf, type Kind } from '#core/kind.ts';
import { StatusError } from '#core/status-error.ts';

/** `metadata`: labels, annotations, finalizers and owners of an object whose spec stays as it is. `status`: writing it. */
export const VERBS = ['get', 'list', 'watch', 'create', 'update', 'delete', 'metadata', 'status'] as const;
export type Verb = (typeof VERBS)[number];

const RIGHTS: Record<Role, readonly Verb[]> = {
  viewer: ['get', 'list', 'watch'],
  editor: ['get', 'list', 'watch', 'create', 'update', 'delete', 'metadata'],
  controller: ['get', 'list', 'watch', 'metadata', 'status'],
  admin: VERBS,
};

/** On cluster-scoped kinds, writing takes a caller of all tenants, and desired state takes an admin. */
const CLUSTER_RIGHTS: Record<Role, readonly Verb[]> = {
  viewer: ['get', 'list', 'watch'],
  editor: ['get', 'list', 'watch'],
  controller: ['get', 'list', 'watch', 'metadata', 'status'],
  admin: VERBS,
};

const READS: readonly Verb[] = ['get', 'list', 'watch'];

export function may(caller: Caller, verb: Verb, scope: Kind['scope']): boolean {
  const rights = scope === 'Cluster' ? CLUSTER_RIGHTS : RIGHTS;
  if (scope === 'Cluster' && !READS.includes(verb) && caller.tenants !== '*') return false;
  return caller.roles.some((role) => rights[role].includes(verb));
}

/** @throws {StatusError} Forbidden, naming who may. */
export function authorize(caller: Caller, verb: Verb, kind: Kind): void {
  if (may(caller, verb, kind.scope)) return;
  throw forbidden(caller, verb === 'metadata' ? 'update' : verb === 'status' ? 'write the status of' : verb, kind);
}

export function forbidden(caller: Caller, action: string, kind: Kind): StatusError {
  const roles = caller.roles.length > 0 ? caller.roles.join(', ') : 'none';
  const hint =
    kind.scope === 'Cluster'
      ? 'cluster-scoped kinds are written by admins of all tenants, their status by controllers of all tenants'
      : 'viewers read, editors write, controllers write status, finalizers and other metadata, admins do everything';
  return new StatusError(
    'Forbidden',
    `${JSON.stringify(caller.subject)} (roles: ${roles}) may not ${action} ${resourceOf(kind)}: ${hint}`,
    { details: { group: kind.group, kind: kind.plural } },
  );
}
