import fc from 'fast-check';
import { expect, test } from 'vitest';

import { sameJson } from '#core/json.ts';

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, child]) => [key, shuffled(child)]),
  );
}

test('documents are the same whatever the order of their keys', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => sameJson(value, shuffled(value))));
});

test('documents are the same exactly when they print the same in one order of keys', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 1 }), fc.jsonValue({ maxDepth: 1 }), (a, b) => {
      const sorted = (value: unknown): string =>
        JSON.stringify(value, (_, part: unknown) =>
          typeof part === 'object' && part !== null && !Array.isArray(part)
            ? Object.fromEntries(Object.entries(part).toSorted(([x], [y]) => (x < y ? -1 : 1)))
            : part,
        );
      return sameJson(a, b) === (sorted(a) === sorted(b));
    }),
  );
});

test.for([
  [
    [1, 2],
    [2, 1],
  ],
  [{ a: 1 }, { a: 1, b: undefined }],
  [{ a: null }, {}],
  [[], {}],
  [0, '0'],
  [{ constructor: 1 }, { other: 1 }],
])('%j is not %j', ([a, b]) => {
  expect(sameJson(a, b)).toBe(false);
});
