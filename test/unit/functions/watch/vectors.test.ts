import { describe, expect, test } from 'vitest';
import type { CursorVector } from '#core/cursor.ts';
import { furthest, isAhead, missingIn, withoutStream, withPoint } from '#functions/watch/vectors.ts';

describe('isAhead', () => {
  test.each([
    [{ 1: 2 }, { 1: 1 }, true],
    [{ 1: 1 }, { 1: 1 }, false],
    [{ 1: 1, 2: 5 }, { 1: 3, 2: 4 }, true],
    [{ 1: 9 }, { 2: 1 }, false],
    [{}, { 1: 1 }, false],
  ])('of %j and %j is %s', (one, other, expected) => {
    expect(isAhead(vector(one), vector(other))).toBe(expected);
  });
});

test('furthest takes the later point of each stream that the first has, and leaves both as they are', () => {
  const one = vector({ 1: 2, 2: 7 });
  const other = vector({ 1: 5, 2: 3, 3: 9 });
  expect(furthest(one, other)).toEqual(vector({ 1: 5, 2: 7 }));
  expect(one).toEqual(vector({ 1: 2, 2: 7 }));
});

test('streams that only the first has are missing in the other', () => {
  expect(missingIn(vector({ 1: 0, 2: 1, 3: 1 }), vector({ 2: 9, 4: 1 }))).toEqual([1n, 3n]);
});

test('a vector is changed in a copy', () => {
  const one = vector({ 1: 1 });
  expect(withPoint(one, 2n, { seq: 3n, position: 3n })).toEqual(vector({ 1: 1, 2: 3 }));
  expect(withoutStream(one, 1n)).toEqual(vector({}));
  expect(one).toEqual(vector({ 1: 1 }));
});

function vector(seqs: Readonly<Record<number, number>>): CursorVector {
  return new Map(Object.entries(seqs).map(([id, seq]) => [BigInt(id), { seq: BigInt(seq), position: BigInt(seq) }]));
}
