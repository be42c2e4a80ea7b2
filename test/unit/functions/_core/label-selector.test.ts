import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { matchesSelector, parseLabelSelector, type SelectorRequirement } from '#core/label-selector.ts';
import { StatusError } from '#core/status-error.ts';

const exists = (key: string): SelectorRequirement => ({ key, operator: 'Exists', values: [] });
const isIn = (key: string, ...values: string[]): SelectorRequirement => ({ key, operator: 'In', values });
const notIn = (key: string, ...values: string[]): SelectorRequirement => ({ key, operator: 'NotIn', values });
const absent = (key: string): SelectorRequirement => ({ key, operator: 'DoesNotExist', values: [] });

describe('parseLabelSelector', () => {
  it.each<[string, SelectorRequirement[]]>([
    ['', []],
    [' \t\r\n', []],
    ['a=b', [isIn('a', 'b')]],
    ['a==b', [isIn('a', 'b')]],
    [' a = b ', [isIn('a', 'b')]],
    ['a!=b', [notIn('a', 'b')]],
    ['a in (b,c)', [isIn('a', 'b', 'c')]],
    ['a in(b)', [isIn('a', 'b')]],
    ['a notin ( b , c )', [notIn('a', 'b', 'c')]],
    ['a', [exists('a')]],
    ['!a', [absent('a')]],
    ['! a', [absent('a')]],
    ['a,!b,c=d', [exists('a'), absent('b'), isIn('c', 'd')]],
    ['example.dev/a=b', [isIn('example.dev/a', 'b')]],
  ])('reads %j', (text, expected) => {
    expect(parseLabelSelector(text)).toEqual(expected);
  });

  it.each<[string, SelectorRequirement[]]>([
    ['a=', [isIn('a', '')]],
    ['a!=,b', [notIn('a', ''), exists('b')]],
    ['a in ()', [isIn('a', '')]],
    ['x in (foo,,baz),y,z notin ()', [isIn('x', 'foo', '', 'baz'), exists('y'), notIn('z', '')]],
  ])('takes an absent value for the empty one in %j', (text, expected) => {
    expect(parseLabelSelector(text)).toEqual(expected);
  });

  it('takes "in" and "notin" for words where a key or a value stands', () => {
    expect(parseLabelSelector('in in (in,notin),notin=in,notin')).toEqual([
      isIn('in', 'in', 'notin'),
      isIn('notin', 'in'),
      exists('notin'),
    ]);
  });

  it('counts a repeated value once', () => {
    expect(parseLabelSelector('a in (b,c,b)')).toEqual([isIn('a', 'b', 'c')]);
  });

  it.each([
    ['a,', 'found the end, expected a label key'],
    [',a', 'found ",", expected a label key'],
    ['a,,b', 'found ",", expected a label key'],
    ['(a)', 'found "(", expected a label key'],
    ['!!a', 'found "!", expected a label key'],
    ['!a=b', 'found "=", expected "," or the end'],
    ['a===b', 'found "=", expected "," or the end'],
    ['a==b==c', 'found "==", expected "," or the end'],
    ['a b', 'found "b", expected "=", "==", "!=", "in" or "notin" after "a"'],
    ['a>1', 'found ">", expected "=", "==", "!=", "in" or "notin" after "a"'],
    ['a in', 'found the end, expected "(" before the values of "a"'],
    ['a in b', 'found "b", expected "("'],
    ['a in (b', 'found the end, expected "," or ")"'],
    ['a in (b c)', 'found "c", expected "," or ")"'],
    ['a/b/c', 'the key "a/b/c" is invalid'],
    ['Example.dev/a', 'must be a DNS subdomain'],
    ['/a', 'must be a DNS subdomain'],
    ['example.dev/', 'the key "example.dev/" is invalid'],
    ['-a', 'the key "-a" is invalid'],
    ['__proto__', 'the key "__proto__" is invalid'],
    ['a=b:c', 'the value "b:c" of "a" is invalid'],
    ['a=é', 'the value "é" of "a" is invalid'],
    ['a=b\0', 'the value "b\\u0000" of "a" is invalid'],
  ])('refuses %j and names the bad part', (text, message) => {
    expect(refusal(text)).toMatchObject({ reason: 'BadRequest', message: expect.stringContaining(message) });
    expect(refusal(text)).toMatchObject({ message: expect.stringMatching(/^labelSelector: /) });
  });

  it('holds the limits of 63 and 253 characters, to the character', () => {
    const prefix = `${'a.'.repeat(126)}b`;
    expect(prefix).toHaveLength(253);
    expect(parseLabelSelector(`${prefix}/${'k'.repeat(63)}=${'v'.repeat(63)}`)).toHaveLength(1);
    expect(refusal(`a${prefix}/k`)).toBeInstanceOf(StatusError);
    expect(refusal('k'.repeat(64))).toBeInstanceOf(StatusError);
    expect(refusal(`k=${'v'.repeat(64)}`)).toBeInstanceOf(StatusError);
  });

  it('does not repeat an endless key in its message', () => {
    expect(refusal('k'.repeat(16_000))?.message.length).toBeLessThan(500);
  });

  it('reads back every selector, however it is spaced', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 5 }), fc.infiniteStream(space), (requirements, spaces) => {
        const text = requirements.flatMap((next, index) => (index === 0 ? tokens(next) : [',', ...tokens(next)]));
        const spaced = text.map((token) => `${token}${spaces.next().value}`).join('');
        expect(parseLabelSelector(spaced)).toEqual(requirements);
      }),
    );
  });

  it('throws nothing but a BadRequest, whatever the text', () => {
    const piece = fc.oneof(
      fc.constantFrom('=', '==', '!', '!=', '(', ')', ',', ' in ', ' notin ', '/', 'a', 'b.c', '>'),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const error = refusal(pieces.join(''));
        expect(error === undefined || error.reason === 'BadRequest').toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('matchesSelector', () => {
  const matches = (selector: string, labels: Record<string, string>) =>
    matchesSelector(parseLabelSelector(selector), labels);

  it('selects everything without requirements', () => {
    expect(matches('', {})).toBe(true);
    expect(matches('', { a: 'b' })).toBe(true);
  });

  it('holds when all requirements hold', () => {
    expect(matches('a=b,c', { a: 'b', c: 'x' })).toBe(true);
    expect(matches('a=b,c', { a: 'b' })).toBe(false);
    expect(matches('a in (x,b),!c', { a: 'b' })).toBe(true);
    expect(matches('a in (x,b),!c', { a: 'b', c: '' })).toBe(false);
  });

  it('lets != and notin select objects without the key', () => {
    expect(matches('a!=b', {})).toBe(true);
    expect(matches('a notin (b,c)', {})).toBe(true);
    expect(matches('a!=b', { a: 'b' })).toBe(false);
    expect(matches('a!=b', { a: 'c' })).toBe(true);
  });

  it('tells the empty value from the absent key', () => {
    expect(matches('a=', { a: '' })).toBe(true);
    expect(matches('a=', {})).toBe(false);
    expect(matches('a', { a: '' })).toBe(true);
  });

  it('knows the labels of the object only, not what every JavaScript object has', () => {
    expect(matches('constructor', {})).toBe(false);
    expect(matches('!toString', {})).toBe(true);
    expect(matches('constructor=x', { constructor: 'x' })).toBe(true);
  });

  it('makes each pair of operators the opposite of the other', () => {
    const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('', 'x', 'y'));
    fc.assert(
      fc.property(
        fc.constantFrom('a', 'b', 'c'),
        fc.uniqueArray(fc.constantFrom('', 'x', 'y'), { minLength: 1 }),
        labels,
        (key, values, object) => {
          expect(matchesSelector([isIn(key, ...values)], object)).toBe(
            !matchesSelector([notIn(key, ...values)], object),
          );
          expect(matchesSelector([exists(key)], object)).toBe(!matchesSelector([absent(key)], object));
        },
      ),
    );
  });
});

const space = fc.constantFrom('', '', ' ', '\t', ' \r\n');
const label = fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/);
const key = fc.oneof(label, fc.constantFrom('in', 'notin', 'example.dev/name'));
const requirement: fc.Arbitrary<SelectorRequirement> = fc
  .record({
    key,
    operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
    values: fc.uniqueArray(fc.oneof(label, fc.constantFrom('', 'in', 'notin')), { minLength: 1, maxLength: 4 }),
  })
  .map(({ key, operator, values }) => ({
    key,
    operator,
    values: operator === 'In' || operator === 'NotIn' ? values : [],
  }));

function tokens({ key, operator, values }: SelectorRequirement): string[] {
  if (operator === 'Exists') return [key];
  if (operator === 'DoesNotExist') return ['!', key];
  const list = values.flatMap((value, index) => (index === 0 ? [value] : [',', value]));
  return [`${key} `, operator === 'In' ? 'in' : 'notin', '(', ...list, ')'];
}

function refusal(text: string): StatusError | undefined {
  try {
    parseLabelSelector(text);
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}
