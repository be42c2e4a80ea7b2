import { expect, test } from 'vitest';

import { visibleTo, type Caller, type TenantSet } from '#core/identity.ts';

test.for([
  ['*', '*'],
  [[], ['shared']],
  [
    ['zoo', 'acme'],
    ['acme', 'shared', 'zoo'],
  ],
  [
    ['shared', 'acme', 'acme'],
    ['acme', 'shared'],
  ],
] satisfies [TenantSet, TenantSet][])('a token of %j sees %j', ([tenants, visible]) => {
  const caller: Caller = { audience: 'public', subject: 'ann', roles: [], tenants, expiresAtMs: 0 };
  expect(visibleTo(caller)).toEqual({ tenants: visible });
});
