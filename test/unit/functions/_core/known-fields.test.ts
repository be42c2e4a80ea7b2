import * as v from 'valibot';
import { expect, test } from 'vitest';

import { strictObject } from '#core/kinds/strict-object.ts';
import { validateKnownFields } from '#core/known-fields.ts';

const entries = { size: v.optional(v.number(), 1), list: v.optional(v.array(v.object({ a: v.optional(v.number()) }))) };

test('fields that the schema drops are unknown, wherever they lie; what it adds is not', () => {
  const document = { size: 2, x: 1, list: [{ a: 1 }, { a: 2, b: { c: 3 } }] };
  expect(validateKnownFields('spec', document, v.object(entries), [], false)).toEqual({
    document: { size: 2, list: [{ a: 1 }, { a: 2 }] },
    unknown: ['spec.x', 'spec.list[1].b'],
  });
  expect(validateKnownFields('spec', {}, v.object(entries), [], false)).toEqual({ document: { size: 1 }, unknown: [] });
  expect(validateKnownFields('spec', { x: 1 }, v.looseObject(entries), [], true).unknown).toEqual([]);
});

test.for([
  ['every one at once', strictObject(entries)],
  ['one at a time', v.strictObject(entries)],
] as const)('fields that a schema refuses, %s, are causes, or left out where that is asked for', ([, schema]) => {
  const document = { size: 2, x: 1, y: 2 };
  const refused = validateKnownFields('spec', document, schema, [], false);
  expect(refused.causes?.[0]).toEqual({ reason: 'FieldValueForbidden', message: 'unknown field', field: 'spec.x' });
  expect(refused.unknown).toEqual([]);
  expect(validateKnownFields('spec', document, schema, [], true)).toEqual({
    document: { size: 2 },
    unknown: ['spec.x', 'spec.y'],
  });
});

test('what is wrong with the rest is told beside the unknown fields', () => {
  const { causes, unknown } = validateKnownFields('spec', { size: 'big', x: 1 }, strictObject(entries), [], true);
  expect(causes?.map(({ field }) => field)).toEqual(['spec.size']);
  expect(unknown).toEqual(['spec.x']);
});

test('more unknown fields than are looked for one at a time are causes', () => {
  const document = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x${n}`, n]));
  const { causes, unknown } = validateKnownFields('spec', document, v.strictObject(entries), [], true);
  expect(causes).toHaveLength(1);
  expect(unknown).toHaveLength(50);
});
