import { expect, test } from 'vitest';

import { immutableCauses } from '#core/immutable-fields.ts';

const fields = (...args: Parameters<typeof immutableCauses>): string[] =>
  immutableCauses(...args).map(({ field }) => field);

test('a path stands for all that lies below it', () => {
  const current = { place: { zone: 'a', racks: [1, 2] } };
  expect(fields(['spec.place'], { place: { racks: [1, 2], zone: 'a' }, size: 1 }, current)).toEqual([]);
  expect(fields(['spec.place'], { place: { racks: [2, 1], zone: 'a' } }, current)).toEqual(['spec.place']);
});

test('coming and going are changes, and a path through what is no object leads to nothing', () => {
  expect(fields(['spec.a.b'], { a: { b: null } }, { a: {} })).toEqual(['spec.a.b']);
  expect(fields(['spec.a.b'], {}, { a: { b: 0 } })).toEqual(['spec.a.b']);
  expect(fields(['spec.a.b'], { a: ['b'] }, { a: 'b' })).toEqual([]);
  expect(fields(['spec.constructor'], {}, {})).toEqual([]);
});

test('a default that came after the object is no change', () => {
  expect(fields(['spec.a'], { a: 'default' }, {}, { a: 'default' })).toEqual([]);
  expect(fields(['spec.a'], { a: 'other' }, {}, { a: 'default' })).toEqual(['spec.a']);
});
