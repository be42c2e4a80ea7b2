import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { StatusError } from '#core/status-error.ts';
import { MAX_JSON_DEPTH, parseStrictJson } from '#core/strict-json.ts';

function refusal(text: string): StatusError {
  try {
    parseStrictJson(text);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error(`accepted: ${text.slice(0, 200)}`);
}

const FORBIDDEN = ['__proto__', 'constructor', 'prototype'];
const text = fc.string({ unit: 'grapheme' }).filter((s) => !s.includes('\0') && s.isWellFormed());
const key = text.filter((s) => !FORBIDDEN.includes(s));
const number = fc
  .oneof(fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((n) => (Number.isInteger(n) ? Number.isSafeInteger(n) : Math.abs(n) > 1e-38));
const json = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, fc.constant(null), fc.boolean(), number, text, tie('array'), tie('object')),
  array: fc.array(tie('value')),
  object: fc.dictionary(key, tie('value'), { noNullPrototype: true }),
})).value;

describe('numbers', () => {
  test.for(['1e-400', '9007199254740.99312345', '0.1234567890123456789012345678901234', '1.00000000000000000001'])(
    '%s would not be kept as it is, and is refused',
    (number) => {
      expect(refusal(`{"a":${number}}`).code).toBe(400);
    },
  );

  test.for([
    '0',
    '-0',
    '0e10',
    '0.000',
    '1.50',
    '1e3',
    '0.1',
    '0.10000000000000001',
    '123456789012345',
    '1.7976931348623157e2',
  ])('%s is kept', (number) => {
    expect(parseStrictJson(number)).toBe(Number(number));
  });
});

describe('strict JSON', () => {
  test('reads every harmless document as the engine does, printed tightly or widely', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 2, '\t'), (value, indent) => {
        const printed = JSON.stringify(value, undefined, indent);
        expect(parseStrictJson(printed)).toEqual(JSON.parse(printed));
      }),
      { numRuns: 1000 },
    );
  });

  test('accepts of any text only what the engine accepts, and gives the same value', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b',
      '1',
      '-',
      '0',
      '.5',
      'e9',
      'true',
      'null',
      ' ',
      '\\u0041',
      '"',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const candidate = pieces.join('');
        let parsed: unknown;
        try {
          parsed = parseStrictJson(candidate);
        } catch (error) {
          expect(error).toBeInstanceOf(StatusError);
          return;
        }
        expect(parsed).toEqual(JSON.parse(candidate));
      }),
      { numRuns: 20_000 },
    );
  });

  test.for([
    ['', 'found the end at position 0 (line 1, column 1), expected a value'],
    ['{"a":1,}', 'found character "}" at position 7'],
    ['{"a":1 "b":2}', 'found character "\\"" at position 7 (line 1, column 8), expected "," or "}"'],
    ['{\n  "a": tru\n}', 'found character "t" at position 9 (line 2, column 8)'],
    ['[1, 2', 'found the end at position 5'],
    ['{} {}', 'expected the end'],
    ["{'a':1}", 'a key in double quotes'],
    ['{"a":01}', 'expected "," or "}"'],
    ['{"a":+1}', 'expected a value'],
    ['{"a":.5}', 'expected a value'],
    ['{"a":NaN}', 'expected a value'],
    ['{"a":"\t"}', 'no bare control character'],
    ['{"a":"\\x41"}', 'unknown escape'],
    ['{"a":"open', 'a closing double quote'],
    ['{"a"', '":"'],
    ['{"a":1}/* no */', 'expected the end'],
  ] as const)('says where %j is not JSON', ([candidate, words]) => {
    const error = refusal(candidate);
    expect(error.code).toBe(400);
    expect(error.message).toContain(words);
  });

  test.for([
    ['{"spec":{"a":"x\\u0000y"}}', 'spec.a', 'NUL'],
    ['{"spec":{"a\\u0000":1}}', 'spec', 'NUL'],
    ['{"spec":{"list":[1,"\\ud800"]}}', 'spec.list[1]', 'surrogate'],
    ['{"spec":{"\\udc00":1}}', 'spec', 'surrogate'],
    ['{"spec":{"a":9007199254740993}}', 'spec.a', '9007199254740991'],
    ['{"spec":{"a":-9007199254740992}}', 'spec.a', '9007199254740991'],
    ['{"spec":{"a":1e30}}', 'spec.a', 'exact'],
    ['{"spec":{"a":1e400}}', 'spec.a', 'too large'],
    ['{"spec":{"a":1e-300}}', 'spec.a', 'close to zero'],
    ['{"__proto__":{"admin":true}}', '__proto__', 'not allowed'],
    ['{"spec":{"\\u005f_proto__":1}}', 'spec.__proto__', 'not allowed'],
    ['{"spec":[{"constructor":{}}]}', 'spec[0].constructor', 'not allowed'],
    ['{"spec":{"prototype":{}}}', 'spec.prototype', 'not allowed'],
    ['{"metadata":{"labels":{"a/b":"1","a/b":"2"}}}', 'metadata.labels["a/b"]', 'twice'],
  ] as const)('refuses %j and names the place', ([candidate, field, words]) => {
    const error = refusal(candidate);
    expect(error.code).toBe(400);
    expect(error.message).toContain(words);
    expect(error.details?.causes?.[0]?.field).toBe(field);
  });

  test('takes the deepest allowed nesting and not one level more', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    expect(() => parseStrictJson(nested(MAX_JSON_DEPTH))).not.toThrow();
    expect(refusal(nested(MAX_JSON_DEPTH + 1)).message).toContain('nested deeper than 64 levels');
  });

  test('refuses a million brackets without a deep stack', () => {
    expect(refusal('['.repeat(1_000_000)).code).toBe(400);
    expect(refusal('{"a":'.repeat(200_000)).code).toBe(400);
  });

  test('reads a text of one megabyte with and without escapes', () => {
    expect(parseStrictJson(`"${'x'.repeat(1_000_000)}"`)).toHaveLength(1_000_000);
    expect(parseStrictJson(`"${'\\n'.repeat(500_000)}"`)).toHaveLength(500_000);
  });

  test('repeats no value in what it says', () => {
    expect(refusal('{"password":"hunter2\\u0000"}').message).not.toContain('hunter2');
    expect(refusal('{"password":"hunter2" oops}').message).not.toContain('hunter2');
  });
});
