import { expect, test } from 'vitest';
import type { Caller, TenantSet } from '#core/identity.ts';
import { payerOf, payersOf } from '#http/charged-to.ts';

function caller(tenants: Caller['tenants']): Caller {
  return { audience: 'public', subject: 'ann', roles: ['viewer'], tenants, expiresAtMs: 0 };
}

test.each<[string, Caller['tenants'], string | undefined, object]>([
  ['its own tenant', ['acme', 'globex'], 'acme', { tenant: 'acme' }],
  ['a tenant of all', '*', 'acme', { tenant: 'acme' }],
  ['a tenant of somebody else: it is not used up', ['acme'], 'globex', { subject: 'ann' }],
  ['the shared tenant, which all read', ['acme'], 'shared', { subject: 'ann' }],
  ['no tenant, of a caller that has one', ['acme'], undefined, { tenant: 'acme' }],
  ['no tenant, of a caller that has several', ['acme', 'globex'], undefined, { subject: 'ann' }],
  ['no tenant, of a caller of all', '*', undefined, { subject: 'ann' }],
])('a request for %s is charged', (_, tenants, tenant, payer) => {
  expect(payerOf(caller(tenants), tenant)).toEqual(payer);
});

test.each<[string, TenantSet, object[]]>([
  ['some tenants', ['acme', 'globex', 'shared'], [{ tenant: 'acme' }, { tenant: 'globex' }]],
  ['the shared tenant alone', ['shared'], [{ subject: 'ann' }]],
  ['all tenants', '*', [{ subject: 'ann' }]],
  ['all but some', { allBut: ['acme'] }, [{ subject: 'ann' }]],
])('a watch of %s is charged', (_, tenants, payers) => {
  expect(payersOf('ann', tenants, 'shared')).toEqual(payers);
});
