import { describe, expect, test } from 'vitest';
import type { Securable } from '#core/ports/database-servers.ts';
import {
  isRoleUsed,
  othersLeaving,
  ownersOf,
  rightsChanges,
  rolesAt,
} from '#functions/reconcile/kinds/binding-rights.ts';
import { newPassword } from '#functions/reconcile/kinds/password.ts';

const place = {
  subject: 'ann',
  databaseName: 'orders',
  databaseUid: 'd1',
  tenantUid: 't1',
  server: 'local',
  database: 'acme_orders',
  owner: 'acme_orders_owner',
  role: 'acme_ann',
};

function binding(
  name: string,
  options: { role?: string; subject?: string; database?: string; isDeleting?: boolean; at?: readonly object[] } = {},
) {
  const { role = 'reader', subject = 'ann', database = 'orders', isDeleting = false, at = [place] } = options;
  return {
    apiVersion: 'plumbline.dev/v1',
    kind: 'RoleBinding',
    metadata: { name, uid: `uid of ${name}`, ...(isDeleting && { deletionTimestamp: '2026-11-29T10:00:00Z' }) },
    spec: { subject, database, role },
    status: { places: [...at] },
  };
}

describe('the roles of a subject', () => {
  test('are those of its live bindings that have a place in the database', () => {
    const bindings = [
      binding('a'),
      binding('b', { role: 'writer' }),
      binding('c', { role: 'owner', isDeleting: true }),
      binding('d', { role: 'owner', subject: 'bob' }),
      binding('e', { role: 'owner', database: 'bills' }),
      binding('f', { role: 'owner', at: [] }),
      binding('g', { role: 'owner', at: [{ ...place, leaving: true }] }),
      binding('h', { role: 'owner', at: [{ ...place, databaseUid: 'of one before' }] }),
      binding('i', { role: 'owner', at: [{ ...place, server: 'other' }] }),
    ];
    expect(rolesAt(bindings, place)).toEqual(['reader', 'writer']);
  });

  test('need the login as long as a live binding has a place on the server that it does not leave', () => {
    const elsewhere = { ...place, server: 'other' };
    expect(isRoleUsed([binding('a', { isDeleting: true })], place)).toBe(false);
    expect(isRoleUsed([binding('a', { at: [elsewhere] })], place)).toBe(false);
    expect(isRoleUsed([binding('a', { at: [{ ...place, leaving: true }] })], place)).toBe(false);
    const bills = { ...place, databaseName: 'bills' };
    expect(isRoleUsed([binding('a', { database: 'bills', at: [bills] })], place)).toBe(true);
    // It will move away, and then look after the role.
    expect(isRoleUsed([binding('a', { subject: 'bob' })], place)).toBe(true);
  });

  test('wait for other bindings that leave the role, and never for oneself', () => {
    const deleted = binding('a', { isDeleting: true });
    const moving = binding('d', { at: [{ ...place, leaving: true }] });
    expect(othersLeaving([deleted, moving], place, 'uid of b')).toEqual(['a', 'd']);
    expect(othersLeaving([deleted], place, 'uid of a')).toEqual([]);
    expect(othersLeaving([binding('c')], place, 'uid of b')).toEqual([]);
  });
});

describe('the groups of a subject', () => {
  test('are the owners of databases that its bindings on this server are for', () => {
    const bills = { ...place, owner: 'acme_bills_owner' };
    const others = [
      { ...bills, role: 'acme_bob' },
      { ...bills, server: 'other' },
    ];
    expect(ownersOf([binding('a', { at: others })], place)).toEqual(['acme_orders_owner']);
    expect(ownersOf([binding('a', { at: [bills] })], place)).toEqual(['acme_orders_owner', 'acme_bills_owner']);
  });
});

describe('changes of rights', () => {
  const table: Securable = {
    kind: 'table',
    name: 'public.items',
    giver: 'acme_orders_owner',
    held: ['SELECT', 'TRUNCATE'],
  };
  const membership: Securable = { kind: 'membership', name: 'acme_orders_owner', giver: null, held: [] };

  test('are what differs from the union', () => {
    expect(rightsChanges([table, membership], ['writer', 'reader'])).toEqual([
      { securable: table, grant: ['INSERT', 'UPDATE', 'DELETE'], revoke: ['TRUNCATE'] },
    ]);
    expect(rightsChanges([membership], ['owner'])).toEqual([{ securable: membership, grant: ['MEMBER'], revoke: [] }]);
  });

  test('take the right to pass rights on, and leave the right', () => {
    const option = 'GRANT OPTION FOR SELECT';
    expect(rightsChanges([{ ...table, held: ['SELECT', option] }], ['reader'])).toEqual([
      { securable: { ...table, held: ['SELECT', option] }, grant: [], revoke: [option] },
    ]);
  });

  test('take everything where nobody gives anything', () => {
    expect(rightsChanges([table], [])).toEqual([{ securable: table, grant: [], revoke: ['SELECT', 'TRUNCATE'] }]);
  });

  test('are none where all is as it should be', () => {
    expect(rightsChanges([{ ...table, held: ['SELECT'] }, membership], ['reader'])).toEqual([]);
  });
});

describe('newPassword()', () => {
  test('gives 32 characters that need no quoting, others each time', () => {
    const passwords = new Set(Array.from({ length: 100 }, newPassword));
    expect(passwords.size).toBe(100);
    for (const password of passwords) expect(password).toMatch(/^[A-Za-z0-9_-]{32}$/);
  });
});
