import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { databaseName, draftName, ownerRoleName, subjectRoleName } from '#functions/reconcile/kinds/external-names.ts';

describe('the names of databases and roles', () => {
  test('say whose they are', () => {
    expect(databaseName('acme', 'orders.eu')).toBe('acme_orders.eu');
    expect(ownerRoleName('acme', 'orders')).toBe('acme_orders_owner');
    expect(subjectRoleName('acme', 'ann')).toBe('acme_ann');
    expect(draftName('0199')).toBe('plumbline_0199');
  });

  test.each([
    ['pg', 'x', 't__pg_x'],
    ['plumbline', 'server', 't__plumbline_server'],
  ])('of tenant "%s" are none that PostgreSQL or Plumbline has for itself', (tenant, name, external) => {
    expect([databaseName(tenant, name), subjectRoleName(tenant, name)]).toEqual([external, external]);
    expect(ownerRoleName(tenant, name)).toBe(`${external}_owner`);
  });

  test('are as short as PostgreSQL wants them, and differ where only what was cut differs', () => {
    const long = 'o'.repeat(70);
    const names = [`${long}a`, `${long}b`].flatMap((name) => [databaseName('acme', name), ownerRoleName('acme', name)]);
    expect(names.map((name) => name.length)).toEqual([63, 63, 63, 63]);
    expect(new Set(names).size).toBe(4);
    expect(names[0]).toMatch(/^acme_o+__[0-9a-f]{8}$/);
    expect(names[1]).toMatch(/^acme_o+__[0-9a-f]{8}_owner$/);
  });

  test('are never the same for two tenants, objects, or kinds of role', () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?$/);
    // What is likely to collide: words that the names themselves are made with, and long ones.
    const word = fc.oneof(
      label,
      fc.constantFrom('owner', 't', 'pg', 'plumbline', '1a2b3c4d', 'x'.repeat(53), 'x'.repeat(54)),
    );
    fc.assert(
      fc.property(word, word, word, word, (tenant, name, otherTenant, otherName) => {
        fc.pre(tenant !== otherTenant || name !== otherName);
        expect(databaseName(tenant, name)).not.toBe(databaseName(otherTenant, otherName));
        expect(ownerRoleName(tenant, name)).not.toBe(ownerRoleName(otherTenant, otherName));
        expect(subjectRoleName(tenant, name)).not.toBe(ownerRoleName(otherTenant, otherName));
      }),
      { numRuns: 2_000 },
    );
  });
});
