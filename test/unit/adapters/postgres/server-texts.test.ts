import { describe, expect, test } from 'vitest';
import { integerText, quoteName, quoteText } from '#adapters/postgres/servers/quote.ts';
import { isVerifierOf, scramVerifier } from '#adapters/postgres/servers/scram.ts';

describe('what is put into SQL', () => {
  test('is quoted', () => {
    expect(quoteName('a"b')).toBe('"a""b"');
    expect(quoteText("it's")).toBe("'it''s'");
    expect(quoteText("a\\'b")).toBe(" E'a\\\\''b'");
    expect(integerText(-1)).toBe('-1');
  });

  test.each([1.5, Number.NaN, Infinity, 2 ** 53, '5', '5; drop role x', null, undefined, { a: 1 }])(
    'is no number when it is %s',
    (value) => {
      expect(() => integerText(value)).toThrow('a number in SQL must be a safe integer, not ');
    },
  );

  test.each([1, null, undefined, { toString: () => 'a' }, ['a'], 'a\0b'])('is no name when it is %j', (value) => {
    expect(() => quoteName(value as string)).toThrow('a name in SQL must be a text');
    expect(() => quoteText(value as string)).toThrow('a name in SQL must be a text');
  });
});

describe('a verifier', () => {
  test('is that of one password, whatever its salt', async () => {
    const [a, b] = [await scramVerifier('secret'), await scramVerifier('secret')];
    expect(a).not.toBe(b);
    expect([await isVerifierOf(a, 'secret'), await isVerifierOf(b, 'secret')]).toEqual([true, true]);
    expect(await isVerifierOf(a, 'another')).toBe(false);
  });

  test.each(['', 'md5d41d8cd98f00b204e9800998ecf8427e', 'SCRAM-SHA-256$2000000000:c2FsdA==$YQ==:YQ=='])(
    'is none where something else is stored: %s',
    async (stored) => {
      expect(await isVerifierOf(stored, 'secret')).toBe(false);
    },
  );
});
