import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createAtOnce } from '#infra/cloudflare/at-once.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => vi.useRealTimers());

test('each payer has its own places, and none beyond them until one is given back', () => {
  const atOnce = createAtOnce(2);
  const first = atOnce.take('acme');
  expect([first, atOnce.take('acme')]).not.toContain(undefined);
  expect(atOnce.take('acme')).toBeUndefined();
  expect(atOnce.take('other')).toBeDefined();
  first!();
  expect(atOnce.take('acme')).toBeDefined();
  expect(atOnce.take('acme')).toBeUndefined();
});

test('a place that is given back twice is one', () => {
  const atOnce = createAtOnce(1);
  const first = atOnce.take('acme')!;
  first();
  const second = atOnce.take('acme')!;
  first();
  expect(atOnce.take('acme')).toBeUndefined();
  second();
  expect(atOnce.take('acme')).toBeDefined();
});

test('a place of a request that was cut off is free again after 30 s, and no earlier', () => {
  const atOnce = createAtOnce(1);
  const lost = atOnce.take('acme')!;
  vi.setSystemTime(Date.now() + 29_999);
  expect(atOnce.take('acme')).toBeUndefined();
  vi.setSystemTime(Date.now() + 1);
  expect(atOnce.take('acme')).toBeDefined();
  lost();
  expect(atOnce.take('acme')).toBeUndefined();
});
