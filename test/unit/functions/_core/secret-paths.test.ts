import { describe, expect, test } from 'vitest';

import { keepSecrets, keepSecretsInLists, onlySecrets } from '#core/secret-paths.ts';

const PATHS = [
  'spec.password',
  'spec.users.*.token',
  'spec.auth.key',
  'spec.pins.*',
  'spec.map.*.secret',
  'status.password',
];

describe('a replacement keeps the secrets that it leaves out', () => {
  test.for([
    ['an absent secret', { password: 's', size: 1 }, { size: 2 }, { password: 's', size: 2 }],
    ['a secret that it names is replaced', { password: 's' }, { password: 't' }, { password: 't' }],
    ['null is a value, not an absence', { password: 's' }, { password: null }, { password: null }],
    [
      'a secret below an object',
      { auth: { key: 's', user: 'a' } },
      { auth: { user: 'b' } },
      { auth: { key: 's', user: 'b' } },
    ],
    ['an object left out goes with its secret', { auth: { key: 's' } }, {}, {}],
    [
      'every value of a map',
      { map: { a: { secret: 's' }, b: { secret: 't' } } },
      { map: { b: { x: 1 } } },
      { map: { b: { x: 1, secret: 't' } } },
    ],
    ['a list whose elements are all secret', { pins: ['1', '2'] }, { pins: [] }, { pins: ['1', '2'] }],
    ['a list of secrets that is sent is the new one', { pins: ['1', '2'] }, { pins: ['3'] }, { pins: ['3'] }],
    ['paths of the status do not count in the spec', { password: 's' }, { password: 's' }, { password: 's' }],
  ] as const)('%s', ([, current, next, result]) => {
    expect(keepSecrets('spec', current, next, PATHS)).toEqual(result);
  });

  test('elements of a list are matched by name: removing or moving one gives its secret to nobody else', () => {
    const current = {
      users: [
        { name: 'ann', token: 'A' },
        { name: 'bob', token: 'B' },
      ],
    };
    expect(keepSecrets('spec', current, { users: [{ name: 'bob' }] }, PATHS)).toEqual({
      users: [{ name: 'bob', token: 'B' }],
    });
    const moved = { users: [{ name: 'bob' }, { name: 'eve' }, { name: 'ann' }] };
    expect(keepSecrets('spec', current, moved, PATHS)).toEqual({
      users: [{ name: 'bob', token: 'B' }, { name: 'eve' }, { name: 'ann', token: 'A' }],
    });
  });

  test('elements without a name are matched by what a reader sees of them, if that is one alone', () => {
    const current = {
      users: [
        { id: 1, token: 'A' },
        { id: 2, token: 'B' },
        { id: 3, token: 'C' },
        { id: 3, token: 'D' },
      ],
    };
    expect(keepSecrets('spec', current, { users: [{ id: 2 }, { id: 9 }, { id: 3 }] }, PATHS)).toEqual({
      users: [{ id: 2, token: 'B' }, { id: 9 }, { id: 3 }],
    });
  });

  test('a document of another shape gets nothing', () => {
    expect(keepSecrets('spec', { users: [{ name: 'a', token: 'A' }] }, { users: { a: 1 } }, PATHS)).toEqual({
      users: { a: 1 },
    });
    expect(keepSecrets('spec', { auth: { key: 's' } }, { auth: 'none' }, PATHS)).toEqual({ auth: 'none' });
  });
});

describe('a patched document', () => {
  test('loses what the patch removed, and keeps secrets inside of lists that the patch replaced', () => {
    const current = { password: 's', users: [{ name: 'ann', token: 'A' }] };
    const patched = { users: [{ name: 'ann', admin: true }] };
    expect(keepSecretsInLists('spec', current, patched, PATHS)).toEqual({
      users: [{ name: 'ann', admin: true, token: 'A' }],
    });
  });
});

describe('the secrets of a document alone', () => {
  test.for([
    ['a secret', { password: 's', size: 1 }, { password: 's' }],
    ['one below an object', { auth: { key: 's', user: 'a' } }, { auth: { key: 's' } }],
    [
      'elements keep their places',
      { users: [{ name: 'a' }, { name: 'b', token: 's' }] },
      { users: [{}, { token: 's' }] },
    ],
    ['a list without any is left out', { users: [{ name: 'a' }], size: 1 }, {}],
    ['a list whose elements are secret', { pins: ['1', '2'] }, { pins: ['1', '2'] }],
    ['values of a map', { map: { a: { secret: 's', x: 1 }, b: { x: 2 } } }, { map: { a: { secret: 's' } } }],
    [
      'a secret that is null, or an object',
      { password: null, auth: { key: { a: 1 } } },
      { password: null, auth: { key: { a: 1 } } },
    ],
    ['what is of another shape has none', { users: 'ann', auth: ['key'], map: 1 }, {}],
  ] as const)('%s', ([, document, secrets]) => {
    expect(onlySecrets('spec', document, PATHS)).toEqual(secrets);
  });

  test('are those of one root', () => {
    expect(onlySecrets('status', { password: 's', auth: { key: 'k' } }, PATHS)).toEqual({ password: 's' });
  });
});
