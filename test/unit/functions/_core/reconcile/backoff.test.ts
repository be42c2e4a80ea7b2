import { expect, test } from 'vitest';
import { backoffMs } from '#core/reconcile/backoff.ts';

test.each([
  [1, 1_000],
  [2, 2_000],
  [3, 4_000],
  [9, 256_000],
  [10, 300_000],
  [5_000, 300_000],
])('after %i failures in a row it waits for %i ms at most', (attempts, longestMs) => {
  expect(backoffMs(attempts, 1)).toBe(longestMs);
});

test('those that failed together come apart over the whole time', () => {
  expect([0, 0.25, 0.5].map((random) => backoffMs(3, random))).toEqual([0, 1_000, 2_000]);
});
