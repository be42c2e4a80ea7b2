import { describe, expect, it } from 'vitest';

import { labelKeyProblem, labelValueProblem } from '#core/label.ts';

describe('labelKeyProblem', () => {
  it.each(['a', 'A', '0', 'a-b_c.d', 'example.dev/a', 'a/b', 'k'.repeat(63)])('accepts %j', (key) => {
    expect(labelKeyProblem(key)).toBeUndefined();
  });

  it.each(['', '-a', 'a-', 'a b', 'a\n', 'é', 'a/', '/a', 'a/b/c', 'Example.dev/a', 'a..b/c', 'a_b/c', 'k'.repeat(64)])(
    'says what is wrong with %j',
    (key) => {
      expect(labelKeyProblem(key)).toMatch(/such as/);
    },
  );
});

describe('labelValueProblem', () => {
  it.each(['', 'a', '0.1_b-C', 'v'.repeat(63)])('accepts %j', (value) => {
    expect(labelValueProblem(value)).toBeUndefined();
  });

  it.each([' ', '-', 'a/b', 'a\n', 'v'.repeat(64)])('says what is wrong with %j', (value) => {
    expect(labelValueProblem(value)).toMatch(/^a label value is empty, or has/);
  });
});
