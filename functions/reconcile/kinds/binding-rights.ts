/**
 * Which rights bindings come to: the union of what each gives, as one desired set. A binding counts where it has written
 * down that it gives rights, and has not written down that it leaves: each will look after what it is counted for.
 */

import type { GrantPlace, RoleBindingSpec } from '#core/kinds/role-binding.ts';
import { isJsonArray, isJsonObject } from '#core/json.ts';
import type { RightsChange, Securable } from '#core/ports/database-servers.ts';
import type { ResourceObject } from '#core/resource.ts';

type BoundRole = RoleBindingSpec['role'];
/** As another binding's status has it. */
type StoredPlace = { readonly [field: string]: unknown };
type Rights = Readonly<Partial<Record<Securable['kind'], readonly string[]>>>;

const READ: Rights = {
  database: ['CONNECT'],
  schema: ['USAGE'],
  table: ['SELECT'],
  sequence: ['SELECT'],
  'future schemas': ['USAGE'],
  'future tables': ['SELECT'],
  'future sequences': ['SELECT'],
};

const WRITE: Rights = {
  ...READ,
  table: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  sequence: ['SELECT', 'USAGE'],
  'future tables': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'future sequences': ['SELECT', 'USAGE'],
};

const RIGHTS: Readonly<Record<BoundRole, Rights>> = { reader: READ, writer: WRITE, owner: { membership: ['MEMBER'] } };

/** The roles that bindings give the subject on the database of a place. @param bindings all of the tenant. */
export function rolesAt(bindings: readonly ResourceObject[], place: GrantPlace): readonly BoundRole[] {
  const given = bindings.filter(
    (binding) =>
      binding.spec?.['subject'] === place.subject &&
      binding.spec['database'] === place.databaseName &&
      placesWithRole(binding, place).some(
        (each) => each['databaseUid'] === place.databaseUid && !isLeft(binding, each),
      ),
  );
  return [...new Set(given.map(({ spec }) => spec?.['role'] as BoundRole))];
}

/** Whether bindings use the subject's role on the server of a place. Those that have no place yet make it anew. */
export function isRoleUsed(bindings: readonly ResourceObject[], place: GrantPlace): boolean {
  return bindings.some((binding) => placesWithRole(binding, place).some((each) => !isLeft(binding, each)));
}

/** Names of the others that may still have to take back rights of this role. */
export function othersLeaving(
  bindings: readonly ResourceObject[],
  place: GrantPlace,
  ownUid: string,
): readonly string[] {
  const others = bindings.filter(
    (binding) =>
      binding.metadata.uid !== ownUid && placesWithRole(binding, place).some((each) => isLeft(binding, each)),
  );
  return others.map(({ metadata }) => metadata.name ?? '');
}

/** Owners of databases that the subject's role may be a member of on the server of a place: of each, its own pass says. */
export function ownersOf(bindings: readonly ResourceObject[], place: GrantPlace): readonly string[] {
  const places = bindings.flatMap((binding) => placesWithRole(binding, place));
  return [place.owner, ...places.map((each) => String(each['owner']))];
}

/** What differs from the rights that these roles give; nothing when all is as it should be. */
export function rightsChanges(securables: readonly Securable[], roles: readonly BoundRole[]): readonly RightsChange[] {
  return securables.flatMap((securable) => {
    const wanted = new Set(roles.flatMap((role) => RIGHTS[role][securable.kind] ?? []));
    const grant = [...wanted].filter((right) => !securable.held.includes(right));
    const revoke = securable.held.filter((right) => !wanted.has(right));
    return grant.length + revoke.length === 0 ? [] : [{ securable, grant, revoke }];
  });
}

/** The places of a binding that the role of another place is at. */
function placesWithRole({ status }: ResourceObject, { server, role }: GrantPlace): readonly StoredPlace[] {
  const places = status?.['places'];
  const all = isJsonArray(places) ? places.filter(isJsonObject) : [];
  return all.filter((each) => each['server'] === server && each['role'] === role);
}

function isLeft({ metadata }: ResourceObject, place: StoredPlace): boolean {
  return metadata.deletionTimestamp != null || place['leaving'] === true;
}
