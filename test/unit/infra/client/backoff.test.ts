import { expect, test } from 'vitest';
import { createBackoff } from '#infra/client/backoff.ts';

const longest = (): number => 1;

test('waits double from 800 ms to 30 s, each a random share of that', () => {
  const backoff = createBackoff({}, longest);
  expect(Array.from({ length: 7 }, () => backoff.next())).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
  const half = createBackoff({}, () => 0.5);
  expect([half.next(), half.next()]).toEqual([400, 800]);
});

test('what the server asks for is the least, and clients still come apart', () => {
  expect(createBackoff({}, () => 0).next(5_000)).toBe(5_000);
  expect(createBackoff({}, longest).next(5_000)).toBe(5_800);
  expect(createBackoff({}, () => 0).next(1_000, 3_000)).toBe(3_000);
  expect(createBackoff({ maxMs: 50 }, () => 0).next(0, 3_000), 'it can be told to be quicker').toBe(50);
});

test('a connection that lived long makes waits begin anew, and a short one does not', () => {
  const backoff = createBackoff({ steadyMs: 1_000 }, longest);
  backoff.next();
  backoff.lived(999);
  expect(backoff.next()).toBe(1600);
  backoff.lived(1_000);
  expect(backoff.next()).toBe(800);
});

test('many tries do not overflow', () => {
  const backoff = createBackoff({}, longest);
  for (let count = 0; count < 2_000; count += 1) backoff.next();
  expect(backoff.next()).toBe(30_000);
});
