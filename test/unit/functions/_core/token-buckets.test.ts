import { expect, test } from 'vitest';
import { TokenBuckets } from '#core/token-buckets.ts';

function takeMany(buckets: TokenBuckets, key: string, count: number, nowMs: number): number {
  return Array.from({ length: count }, () => buckets.take(key, 10, nowMs)).filter(({ isTaken }) => isTaken).length;
}

test('a bucket holds two seconds of its rate, and fills with time up to that', () => {
  const buckets = new TokenBuckets(10);
  expect(takeMany(buckets, 'a', 30, 0)).toBe(20);
  expect(takeMany(buckets, 'a', 30, 500)).toBe(5);
  expect(takeMany(buckets, 'a', 30, 1_000_000)).toBe(20);
});

test('who is refused is told when there will be a token, and has it then', () => {
  const buckets = new TokenBuckets(10);
  takeMany(buckets, 'a', 20, 0);
  expect(buckets.take('a', 10, 0)).toEqual({ isTaken: false, waitMs: 100 });
  expect(buckets.take('a', 10, 100)).toEqual({ isTaken: true });
});

test('an empty bucket takes nothing from another', () => {
  const buckets = new TokenBuckets(10);
  takeMany(buckets, 'a', 100, 0);
  expect(takeMany(buckets, 'b', 30, 0)).toBe(20);
});

test('of any number of keys only so many are kept, those that were used last', () => {
  const buckets = new TokenBuckets(100);
  takeMany(buckets, 'hot', 20, 0);
  for (let n = 0; n < 10_000; n += 1) {
    buckets.take(`k${n}`, 10, 0);
    expect(buckets.take('hot', 10, 0).isTaken).toBe(false);
  }
  expect(buckets.size).toBe(100);
});
