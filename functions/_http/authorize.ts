/** What each role may do. What a caller may not see does not exist (404); what it sees and may not do is 403. */

import { seesTenant, SHARED_TENANT, type Caller, type Role } from '#core/identity.ts';
import { resourceOf, type Kind } from '#core/kind.ts';
import { type StatusDetails, StatusError } from '#core/status-error.ts';

/**
 * `metadata`: labels, annotations, finalizers and owners of an object whose spec stays as it is. `status`: writing it.
 * `secrets`: reading the fields that no other answer has.
 * `force`: taking off finalizers that are somebody else's.
 */
export const VERBS = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'delete',
  'metadata',
  'status',
  'secrets',
  'force',
] as const;
export type Verb = (typeof VERBS)[number];

const READ: readonly Verb[] = ['get', 'list', 'watch'];
const EDIT: readonly Verb[] = [...READ, 'create', 'update', 'delete', 'metadata'];
const CONTROL: readonly Verb[] = [...READ, 'metadata', 'status', 'secrets'];

/** Each row is a place that the caller sees; where it sees nothing, nothing is there. */
const RIGHTS = {
  /** In a tenant that the token names. */
  own: { viewer: READ, editor: EDIT, controller: CONTROL, admin: VERBS },
  /** In the tenant `shared`, which everybody sees, for a token that does not name it. */
  shared: { viewer: READ, editor: READ, controller: READ, admin: READ },
  /** Cluster-scoped, for a token of all tenants: desired state takes an admin. */
  cluster: { viewer: READ, editor: READ, controller: CONTROL, admin: VERBS },
  /** Cluster-scoped, for a token that names its tenants: their Tenant objects. */
  clusterInPart: { viewer: READ, editor: READ, controller: READ, admin: READ },
} as const satisfies Record<string, Record<Role, readonly Verb[]>>;

const RULES: Record<keyof typeof RIGHTS, string> = {
  own: 'viewers read, editors write, controllers write status, finalizers and other metadata, admins do everything',
  shared: 'everybody reads the tenant "shared"; to write in it, a token must name it',
  cluster: 'cluster-scoped kinds are written by admins of all tenants, their status by controllers of all tenants',
  clusterInPart:
    'cluster-scoped kinds are written by admins of all tenants, their status by controllers of all tenants; ' +
    'they are read with tokens of all tenants, Tenant objects also with those that name the tenant',
};

/** Forbidden, to this token: one with another role could do it. */
export class MissingRight extends StatusError {
  constructor(message: string, options: { readonly details?: StatusDetails } = {}) {
    super('Forbidden', message, options);
  }
}

/** Where something lies that the caller sees. */
export interface Place {
  readonly scope: Kind['scope'];
  /** Undefined: in all tenants that the caller sees. */
  readonly tenant: string | undefined;
}

export function may(caller: Caller, verb: Verb, place: Place): boolean {
  const rights: Record<Role, readonly Verb[]> = RIGHTS[rowOf(caller, place)];
  return caller.roles.some((role) => rights[role].includes(verb));
}

/** @throws {StatusError} Forbidden, naming who may. */
export function authorize(caller: Caller, verb: Verb, kind: Kind, tenant: string | undefined): void {
  if (may(caller, verb, { scope: kind.scope, tenant })) return;
  throw forbidden(caller, ACTIONS[verb] ?? verb, kind, tenant);
}

const ACTIONS: Partial<Record<Verb, string>> = {
  metadata: 'update',
  status: 'write the status of',
  secrets: 'read the secrets of',
  force: 'force the deletion of',
};

export function forbidden(caller: Caller, action: string, kind: Kind, tenant: string | undefined): StatusError {
  const roles = caller.roles.length > 0 ? caller.roles.join(', ') : 'none';
  const rule = RULES[rowOf(caller, { scope: kind.scope, tenant })];
  return new MissingRight(
    `${JSON.stringify(caller.subject)} (roles: ${roles}) may not ${action} ${resourceOf(kind)}: ${rule}`,
    { details: { group: kind.group, kind: kind.plural } },
  );
}

function rowOf(caller: Caller, { scope, tenant }: Place): keyof typeof RIGHTS {
  if (scope === 'Cluster') return caller.tenants === '*' ? 'cluster' : 'clusterInPart';
  return tenant === SHARED_TENANT && !seesTenant(caller, tenant) ? 'shared' : 'own';
}
