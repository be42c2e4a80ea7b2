import { describe, expect, test } from 'vitest';
import type { ExternalRole } from '#core/ports/database-servers.ts';
import { isEmpty, roleRepair } from '#functions/reconcile/kinds/role-repair.ts';

const SOUND: ExternalRole = {
  comment: null,
  surplus: [],
  canLogIn: true,
  isLimited: false,
  hasSettings: false,
  groups: [],
  isUsable: true,
  hasPassword: undefined,
};

describe('what is put right about a role of ours', () => {
  test('is nothing where nothing differs', () => {
    expect(isEmpty(roleRepair(SOUND))).toBe(true);
    expect(isEmpty(roleRepair({ ...SOUND, groups: ['acme_orders_owner'] }, ['acme_orders_owner']))).toBe(true);
  });

  test('is each thing by itself', () => {
    expect(roleRepair({ ...SOUND, surplus: ['CREATEDB'] })).toEqual({ take: ['CREATEDB'] });
    expect(roleRepair({ ...SOUND, canLogIn: false })).toEqual({ letLogIn: true });
    expect(roleRepair({ ...SOUND, isLimited: true })).toEqual({ unlimit: true });
    expect(roleRepair({ ...SOUND, hasSettings: true })).toEqual({ resetSettings: true });
    expect(roleRepair({ ...SOUND, isUsable: false })).toEqual({ makeUsable: true });
    expect(roleRepair({ ...SOUND, groups: ['a', 'b'] }, ['b'])).toEqual({ leave: ['a'] });
  });
});
