/** Which rights bindings come to: the union of what each gives, as one desired set. */

import type { GrantPlace, RoleBindingSpec } from '#core/kinds/role-binding.ts';
import { isJsonArray, isJsonObject } from '#core/json.ts';
import type { RightsChange, Securable } from '#core/ports/database-servers.ts';
import type { ResourceObject } from '#core/resource.ts';

type BoundRole = RoleBindingSpec['role'];
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

/** The roles that live bindings give the subject on the database of a place. @param bindings all of the tenant. */
export function rolesAt(bindings: readonly ResourceObject[], place: GrantPlace): readonly BoundRole[] {
  const given = live(bindings).filter(
    ({ spec }) => spec?.['subject'] === place.subject && spec['database'] === place.databaseName,
  );
  return [...new Set(given.map(({ spec }) => spec?.['role'] as BoundRole))];
}

/** Whether live bindings use the subject's role on the server of a place. Those that have no place yet make it anew. */
export function isRoleUsed(bindings: readonly ResourceObject[], place: GrantPlace): boolean {
  return live(bindings).some(
    (binding) =>
      binding.spec?.['subject'] === place.subject &&
      placesOf(binding).some(
        (each) => each['server'] === place.server && each['databaseName'] === binding.spec?.['database'],
      ),
  );
}

/** Whether others that are being deleted still have to take back rights of this role. */
export function isRoleLeftToOthers(bindings: readonly ResourceObject[], place: GrantPlace, ownUid: string): boolean {
  return bindings.some(
    (binding) =>
      binding.metadata.deletionTimestamp != null &&
      binding.metadata.uid !== ownUid &&
      placesOf(binding).some((each) => each['server'] === place.server && each['role'] === place.role),
  );
}

/** Owners of databases that the subject's role may be a member of on the server of a place: of each, its own pass says. */
export function ownersOf(bindings: readonly ResourceObject[], place: GrantPlace): readonly string[] {
  const places = bindings
    .flatMap(placesOf)
    .filter((each) => each['server'] === place.server && each['role'] === place.role);
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

function live(bindings: readonly ResourceObject[]): readonly ResourceObject[] {
  return bindings.filter(({ metadata }) => metadata.deletionTimestamp == null);
}

function placesOf({ status }: ResourceObject): readonly { readonly [field: string]: unknown }[] {
  const places = status?.['places'];
  return isJsonArray(places) ? places.filter(isJsonObject) : [];
}
