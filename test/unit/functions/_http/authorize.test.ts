import { expect, test } from 'vitest';

import { authorize, may, VERBS } from '#http/authorize.ts';
import { ROLES, type Caller, type Role, type TenantSet } from '#core/identity.ts';
import { tenantKind } from '#core/kinds/tenant.ts';

function caller(roles: readonly Role[], tenants: TenantSet): Caller {
  return { audience: 'public', subject: 'ann', roles, tenants, expiresAtMs: 0 };
}

function table(tenants: TenantSet, scope: 'Namespaced' | 'Cluster'): Record<string, string> {
  return Object.fromEntries(
    ROLES.map((role) => [role, VERBS.filter((verb) => may(caller([role], tenants), verb, scope)).join(' ')]),
  );
}

test('rights on namespaced kinds', () => {
  expect(table(['acme'], 'Namespaced')).toEqual({
    viewer: 'get list watch',
    editor: 'get list watch create update delete metadata',
    controller: 'get list watch metadata status',
    admin: 'get list watch create update delete metadata status',
  });
});

test('rights on cluster-scoped kinds, for callers of all tenants and of some', () => {
  const reads = 'get list watch';
  expect(table('*', 'Cluster')).toEqual({
    viewer: reads,
    editor: reads,
    controller: 'get list watch metadata status',
    admin: 'get list watch create update delete metadata status',
  });
  expect(table(['acme', 'system'], 'Cluster')).toEqual({
    viewer: reads,
    editor: reads,
    controller: reads,
    admin: reads,
  });
});

test('roles add up, and none of them is no right', () => {
  expect(may(caller(['viewer', 'controller'], ['acme']), 'status', 'Namespaced')).toBe(true);
  expect(may(caller([], '*'), 'get', 'Namespaced')).toBe(false);
});

test('a refusal says who may', () => {
  expect(() => authorize(caller(['editor'], '*'), 'create', tenantKind)).toThrow(
    '"ann" (roles: editor) may not create tenants.plumbline.dev: cluster-scoped kinds are written by admins of all tenants',
  );
});
