import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { authorize, may, type Place, VERBS } from '#http/authorize.ts';
import { ROLES, SHARED_TENANT, SYSTEM_TENANT, type Caller, type Role, type TenantSet } from '#core/identity.ts';
import { roleBindingKind } from '#core/kinds/role-binding.ts';
import { tenantKind } from '#core/kinds/tenant.ts';

function caller(roles: readonly Role[], tenants: TenantSet): Caller {
  return { audience: 'public', subject: 'ann', roles, tenants, expiresAtMs: 0 };
}

const ACME: Place = { scope: 'Namespaced', tenant: 'acme' };
const SHARED: Place = { scope: 'Namespaced', tenant: SHARED_TENANT };
const CLUSTER: Place = { scope: 'Cluster', tenant: SYSTEM_TENANT };
const READS = 'get list watch';
const READS_ALONE = { viewer: READS, editor: READS, controller: READS, admin: READS };

function table(tenants: TenantSet, place: Place): Record<string, string> {
  return Object.fromEntries(
    ROLES.map((role) => [role, VERBS.filter((verb) => may(caller([role], tenants), verb, place)).join(' ')]),
  );
}

const OWN = {
  viewer: READS,
  editor: 'get list watch create update delete metadata',
  controller: 'get list watch metadata status secrets',
  admin: 'get list watch create update delete metadata status secrets force',
};

test('rights on namespaced kinds', () => {
  expect(table(['acme'], ACME)).toEqual(OWN);
  expect(table('*', ACME)).toEqual(OWN);
});

test('rights in the shared tenant: everybody reads, and who is named in it writes', () => {
  expect(table(['acme'], SHARED)).toEqual(READS_ALONE);
  expect(table([], SHARED)).toEqual(READS_ALONE);
  expect(table(['acme', 'shared'], SHARED)).toEqual(OWN);
  expect(table('*', SHARED)).toEqual(OWN);
});

test('rights on cluster-scoped kinds, for callers of all tenants and of some', () => {
  expect(table('*', CLUSTER)).toEqual({ ...OWN, editor: READS });
  expect(table(['acme', 'system'], CLUSTER)).toEqual(READS_ALONE);
});

test('README has the same table, for tokens of all tenants', () => {
  const rows = readFileSync('README.md', 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(([, verbs = '', , ...cells]) => verbs.startsWith('`') && cells.length === ROLES.length + 1);
  const shown = rows.flatMap(([, verbs = '', , ...cells]) =>
    [...verbs.matchAll(/`(\w+)`/g)].map(([, verb]) => [verb, cells.slice(0, ROLES.length)]),
  );
  const rights = VERBS.map((verb) => [
    verb,
    ROLES.map((role) => {
      const [namespaced, cluster] = [ACME, CLUSTER].map((place) => may(caller([role], '*'), verb, place));
      return cluster ? 'yes' : namespaced ? 'namespaced' : '';
    }),
  ]);
  expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(rights));
  expect(readFileSync('README.md', 'utf8')).toMatch(new RegExp(`\\| ${ROLES.join(' +\\\\| ')} +\\|`));
});

test('roles add up, and none of them is no right', () => {
  expect(may(caller(['viewer', 'controller'], ['acme']), 'status', ACME)).toBe(true);
  expect(may(caller([], '*'), 'get', ACME)).toBe(false);
});

test('a refusal says who may', () => {
  expect(() => authorize(caller(['editor'], '*'), 'create', tenantKind, SYSTEM_TENANT)).toThrow(
    '"ann" (roles: editor) may not create tenants.plumbline.dev: cluster-scoped kinds are written by admins of all tenants',
  );
});

test('a refusal in the shared tenant says what its token lacks', () => {
  expect(() => authorize(caller(['admin'], ['acme']), 'delete', roleBindingKind, SHARED_TENANT)).toThrow(
    'may not delete rolebindings.plumbline.dev: everybody reads the tenant "shared"; to write in it, a token must name it',
  );
});
