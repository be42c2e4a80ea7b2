import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { applyJsonPatch, MAX_COPIED_CHARACTERS } from '#core/json-patch.ts';
import { MAX_PATCH_OPERATIONS, readJsonPatch } from '#core/json-patch-operations.ts';
import type { JsonObject, JsonValue } from '#core/json.ts';
import { StatusError } from '#core/status-error.ts';

function patched(document: JsonObject, operations: JsonValue): JsonValue {
  return applyJsonPatch(document, readJsonPatch(operations));
}

describe('the examples of RFC 6902', () => {
  test.for<[string, JsonObject, JsonValue, JsonValue]>([
    ['A.1', { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { baz: 'qux', foo: 'bar' }],
    ['A.2', { foo: ['bar', 'baz'] }, [{ op: 'add', path: '/foo/1', value: 'qux' }], { foo: ['bar', 'qux', 'baz'] }],
    ['A.3', { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
    ['A.4', { foo: ['bar', 'qux', 'baz'] }, [{ op: 'remove', path: '/foo/1' }], { foo: ['bar', 'baz'] }],
    ['A.5', { baz: 'qux' }, [{ op: 'replace', path: '/baz', value: 'boo' }], { baz: 'boo' }],
    [
      'A.6',
      { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
      [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
      { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
    ],
    [
      'A.7',
      { foo: ['all', 'grass', 'cows', 'eat'] },
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      { foo: ['all', 'cows', 'eat', 'grass'] },
    ],
    [
      'A.8',
      { baz: 'qux', foo: ['a', 2, 'c'] },
      [
        { op: 'test', path: '/baz', value: 'qux' },
        { op: 'test', path: '/foo/1', value: 2 },
      ],
      { baz: 'qux', foo: ['a', 2, 'c'] },
    ],
    [
      'A.10',
      { foo: 'bar' },
      [{ op: 'add', path: '/child', value: { grandchild: {} } }],
      { foo: 'bar', child: { grandchild: {} } },
    ],
    ['A.11', { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }], { foo: 'bar', baz: 'qux' }],
    ['A.14', { '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: 10 }], { '/': 9, '~1': 10 }],
    [
      'A.16',
      { foo: ['bar'] },
      [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
      { foo: ['bar', ['abc', 'def']] },
    ],
    [
      'the top',
      { a: 1 },
      [
        { op: 'replace', path: '', value: { b: [] } },
        { op: 'add', path: '/b/-', value: 1 },
      ],
      { b: [1] },
    ],
    [
      'copy',
      { a: { b: 1 } },
      [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'add', path: '/a/d', value: 2 },
      ],
      { a: { b: 1, d: 2 }, c: { b: 1 } },
    ],
    ['a move to the same place', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
    ['an empty key', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
    [
      'a test of another order of keys',
      { a: { b: 1, c: 2 } },
      [{ op: 'test', path: '/a', value: { c: 2, b: 1 } }],
      { a: { b: 1, c: 2 } },
    ],
  ])('%s', ([, document, operations, expected]) => {
    const before = structuredClone(document);
    expect(patched(document, operations)).toEqual(expected);
    expect(document).toEqual(before);
  });
});

test.for<[string, JsonObject, JsonValue]>([
  ['a test that fails (A.9)', { baz: 'qux' }, [{ op: 'test', path: '/baz', value: 'bar' }]],
  ['a parent that is not there (A.12)', { foo: 'bar' }, [{ op: 'add', path: '/baz/bat', value: 'qux' }]],
  ['a number for a text (A.15)', { '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: '10' }]],
  ['a removal of nothing', { a: 1 }, [{ op: 'remove', path: '/b' }]],
  ['a replacement of nothing', { a: 1 }, [{ op: 'replace', path: '/b', value: 1 }]],
  ['a copy of nothing', { a: 1 }, [{ op: 'copy', from: '/b', path: '/c' }]],
  ['an index beyond the end', { a: [1] }, [{ op: 'add', path: '/a/2', value: 1 }]],
  ['an index with a leading zero', { a: [1, 2] }, [{ op: 'remove', path: '/a/01' }]],
  ['an index in another spelling', { a: [1, 2] }, [{ op: 'remove', path: '/a/1e0' }]],
  ['a negative index', { a: [1, 2] }, [{ op: 'remove', path: '/a/-1' }]],
  ['the end, where a value must be', { a: [1] }, [{ op: 'remove', path: '/a/-' }]],
  ['the length of a list', { a: [1] }, [{ op: 'test', path: '/a/length', value: 1 }]],
  ['a part of a text', { a: 'x' }, [{ op: 'add', path: '/a/0', value: 'y' }]],
  ['what every object inherits', { a: 1 }, [{ op: 'test', path: '/toString', value: null }]],
  ['a removal of the whole object', { a: 1 }, [{ op: 'remove', path: '' }]],
  ['too deep a value', { a: 1 }, [{ op: 'add', path: '/a', value: nested(64) }]],
  ['too deep a copy', { a: nested(40), b: nested(30) }, [{ op: 'copy', from: '/a', path: `/b${'/x'.repeat(30)}/y` }]],
])('%s is invalid', ([, document, operations]) => {
  expect(() => patched(document, operations)).toThrow(expect.objectContaining({ code: 422 }));
});

test.for<[string, JsonValue, string]>([
  ['an object', {}, 'must be a list'],
  ['a text as operation', ['add'], 'operation 0 of the JSON patch must be an object'],
  ['no op', [{ path: '/a' }], 'needs an op'],
  ['an unknown op', [{ op: 'merge', path: '/a', value: 1 }], 'needs an op'],
  ['no path', [{ op: 'remove' }], 'needs a path'],
  ['no value (A.13)', [{ op: 'add', path: '/a' }], 'needs a value'],
  ['no from', [{ op: 'move', path: '/a' }], 'needs a from'],
  ['a path without a slash', [{ op: 'remove', path: 'a' }], 'must be empty or begin with "/"'],
  ['an unknown escape', [{ op: 'remove', path: '/~2' }], '"~0" or "~1"'],
  ['a half escape', [{ op: 'remove', path: '/a~' }], '"~0" or "~1"'],
  ['a move into itself', [{ op: 'move', from: '/a', path: '/a/b' }], 'into itself'],
  ['__proto__', [{ op: 'add', path: '/__proto__/x', value: 1 }], '"__proto__"'],
  ['constructor', [{ op: 'add', path: '/constructor/prototype/x', value: 1 }], '"constructor"'],
  ['a path of 65 levels', [{ op: 'remove', path: '/a'.repeat(65) }], 'deeper than 64'],
])('%s is malformed', ([, operations, words]) => {
  expect(() => readJsonPatch(operations)).toThrow(
    expect.objectContaining({ code: 400, message: expect.stringContaining(words) }),
  );
});

describe('a patch bomb', () => {
  test('of too many operations is refused before any is done', () => {
    expect(() => readJsonPatch(many(MAX_PATCH_OPERATIONS + 1, { op: 'test', path: '', value: {} }))).toThrow(
      expect.objectContaining({ code: 413 }),
    );
  });

  test('that doubles by copies ends at the bound', () => {
    const double = { op: 'copy', from: '/a', path: '/a/-' };
    expect(() => patched({ a: ['x'.repeat(1000)] }, many(60, double))).toThrow(
      expect.objectContaining({ code: expect.toSatisfy((code) => code === 413 || code === 422) }),
    );
    const wide = Array.from({ length: 60 }, (_, n) => ({ op: 'copy', from: '', path: `/c${n}` }));
    expect(() => patched({ a: 'x'.repeat(1000) }, wide)).toThrow(expect.objectContaining({ code: 413 }));
  });

  test('that moves a large value around ends at the bound', () => {
    const large = 'x'.repeat(MAX_COPIED_CHARACTERS / 4);
    const moves = Array.from({ length: 10 }, (_, n) => ({ op: 'move', from: `/a${n}`, path: `/a${n + 1}` }));
    expect(() => patched({ a0: large }, moves)).toThrow(expect.objectContaining({ code: 413 }));
  });
});

test('any operations make a bounded document or a Status, and change neither what they are given nor a prototype', () => {
  const path = fc.array(fc.constantFrom('a', 'b', '0', '1', '-', 'length', 'toString', '__proto__', '~0', ''), {
    maxLength: 4,
  });
  const pointer = path.map((steps) => steps.map((step) => `/${step}`).join(''));
  const value = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>;
  const op = fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test');
  const operations = fc.array(fc.record({ op, path: pointer, from: pointer, value }), { maxLength: 12 });
  const document = fc.dictionary(fc.constantFrom('a', 'b'), value) as fc.Arbitrary<JsonObject>;
  fc.assert(
    fc.property(document, operations, (before, list) => {
      const given = JSON.stringify([before, list]);
      try {
        expect(depthOf(patched(before, list))).toBeLessThanOrEqual(64);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        expect([400, 413, 422]).toContain(error.code);
      }
      expect(JSON.stringify([before, list])).toBe(given);
    }),
    { numRuns: 2000 },
  );
  expect(Object.keys(Object.prototype)).toEqual([]);
});

function depthOf(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function many(count: number, operation: JsonObject): JsonObject[] {
  return Array.from({ length: count }, () => operation);
}

function nested(levels: number): JsonValue {
  let value: JsonValue = 1;
  for (let level = 0; level < levels; level++) value = { x: value };
  return value;
}
