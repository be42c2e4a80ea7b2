import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { JsonValue } from '#core/json.ts';
import { mergePatch } from '#core/merge-patch.ts';

describe('merge patch', () => {
  // RFC 7386, Appendix A: original, patch, result.
  test.for([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ] as const)('turns %s by %s into %s', ([target, patch, result]) => {
    expect(mergePatch(JSON.parse(target) as JsonValue, JSON.parse(patch) as JsonValue)).toEqual(JSON.parse(result));
  });

  test('lets no __proto__ through and touches no prototype', () => {
    const patch = JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":{"admin":true},"b":1}}') as JsonValue;
    const result = mergePatch({ a: {} }, patch);
    expect(JSON.stringify(result)).toBe('{"a":{"b":1}}');
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
    expect((result as Record<string, unknown>)['admin']).toBeUndefined();
  });

  test('changes neither of its arguments, and twice is once', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (target, patch) => {
        const before = JSON.stringify([target, patch]);
        const once = mergePatch(target as JsonValue, patch as JsonValue);
        expect(JSON.stringify(mergePatch(once, patch as JsonValue))).toBe(JSON.stringify(once));
        expect(JSON.stringify([target, patch])).toBe(before);
      }),
    );
  });
});
