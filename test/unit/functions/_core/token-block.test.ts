import { describe, expect, test } from 'vitest';

import { grantedTo, visibleTo, type Caller, type TenantSet } from '#core/identity.ts';
import { changeOfView, createBlockSet, narrowCaller } from '#core/token-block.ts';

const blocks = createBlockSet([
  { subject: 'mallory' },
  { subject: 'ann', tenant: 'globex' },
  { subject: 'ann', tenant: 'acme' },
  { tokenId: 'stolen', tenant: 'acme' },
  { tokenId: 'stolen' },
  { tokenId: 'lent', tenant: 'zoo' },
]);

function callerOf(tenants: TenantSet): Caller {
  return { audience: 'public', subject: 'ann', roles: ['viewer'], tenants, expiresAtMs: 0 };
}

describe('what is blocked of a token', () => {
  test.for([
    ['nothing of a stranger', { subject: 'bob', tokenId: 'one' }, []],
    ['everything of a subject, whatever the token', { subject: 'mallory', tokenId: 'one' }, 'everything'],
    ['everything of a token without an id', { subject: 'mallory' }, 'everything'],
    ['some tenants of a subject', { subject: 'ann', tokenId: 'one' }, ['acme', 'globex']],
    ['everything of one token, whoever has it', { subject: 'ann', tokenId: 'stolen' }, 'everything'],
    ['what its subject and its id lose together', { subject: 'ann', tokenId: 'lent' }, ['acme', 'globex', 'zoo']],
    ['nothing of one whose subject is the id of another', { subject: 'stolen', tokenId: 'mallory' }, []],
  ] as const)('is %s', ([, token, blocked]) => {
    expect(blocks.blockedOf(token)).toEqual(blocked);
  });
});

describe('a caller without blocked tenants', () => {
  test.for<[TenantSet, readonly string[], TenantSet, TenantSet, TenantSet]>([
    [['acme', 'globex'], ['globex'], ['acme'], ['acme', 'shared'], ['acme', 'globex', 'shared']],
    [['acme'], ['acme'], [], ['shared'], ['acme', 'shared']],
    [['acme'], ['shared'], ['acme'], ['acme'], ['acme', 'shared']],
    [['acme', 'shared'], ['shared'], ['acme'], ['acme'], ['acme', 'shared']],
    ['*', ['globex', 'zoo'], { allBut: ['globex', 'zoo'] }, { allBut: ['globex', 'zoo'] }, '*'],
  ])('of %j without %j writes in %j, sees %j, and has cursors for %j', ([tenants, blocked, own, visible, granted]) => {
    const caller = narrowCaller(callerOf(tenants), blocked);
    expect(caller.tenants).toEqual(own);
    expect(visibleTo(caller)).toEqual({ tenants: visible });
    expect(grantedTo(caller)).toEqual({ tenants: granted });
  });

  test('is the same when its token names none of them', () => {
    const caller = callerOf(['acme']);
    expect(narrowCaller(caller, ['globex'])).toBe(caller);
    expect(grantedTo(caller)).toEqual(visibleTo(caller));
  });
});

test.for([
  [[], [], undefined],
  [['a'], ['a'], undefined],
  [[], ['a'], 'lost'],
  [['a'], [], 'gained'],
  [['a'], ['b'], 'lost'],
] as const)('a view in which %j was blocked and %j is: %s', ([before, after, change]) => {
  expect(changeOfView(before, after)).toBe(change);
});
