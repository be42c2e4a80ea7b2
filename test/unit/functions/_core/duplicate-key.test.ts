import fc from 'fast-check';
import { expect, test } from 'vitest';
import { duplicateKey } from '#core/duplicate-key.ts';

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"b":{"c":[1,{"d":1,"d":2}]}}', 'd'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"":1,"":1}', ''],
  ['{"\\"":1,"\\"":1}', '"'],
  ['[[{"a":"{","a":"}"}]]', 'a'],
  ['{"a":[],"b":1,"a":2}', 'a'],
  ['{ "__proto__" : 1 ,\n"__proto__" : 2 }', '__proto__'],
])('%s has a key twice', (json, key) => {
  expect(duplicateKey(json)).toBe(key);
});

test.each(['{"a":{"a":1},"b":{"a":1}}', '[{"a":1},{"a":1}]', '{"a":"\\"a\\":","b":"a"}', '"a:a"', '1', '[]', '{}'])(
  '%s has not',
  (json) => {
    expect(duplicateKey(json)).toBeUndefined();
  },
);

test('what was made of a value has none, and repeating any of its keys is found', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (object) => {
      const json = JSON.stringify(object);
      const [key = ''] = Object.keys(object);
      expect(duplicateKey(json)).toBeUndefined();
      expect(duplicateKey(`${json.slice(0, -1)},${JSON.stringify(key)}:null}`)).toBe(key);
    }),
  );
});
