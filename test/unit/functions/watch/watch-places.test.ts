import { expect, test } from 'vitest';
import type { TenantLimits } from '#core/ports/tenant-limits.ts';
import { createWatchPlaces } from '#functions/watch/watch-places.ts';

const LIMITS: TenantLimits = {
  default: { requestsPerSecond: 1, watchers: 3 },
  of: (tenant) => ({ requestsPerSecond: 1, watchers: tenant === 'small' ? 1 : 3 }),
};

let refused = 0;
const places = (maxWatchers: number = 100): ReturnType<typeof createWatchPlaces> =>
  createWatchPlaces({ limits: LIMITS, maxWatchers, onRefused: () => (refused += 1) });

test('a tenant at its limit gets no place, and is told so; another one does', () => {
  const { take } = places();
  take('ann', ['small']);
  expect(() => take('bob', ['small'])).toThrow(
    'tenant "small" has 1 open watches at this server, and may have 1: close some, or ask who runs this installation to raise spec.quota.watchers of its Tenant object',
  );
  expect(() => take('bob', ['small'])).toThrow(
    expect.objectContaining({ code: 429, details: { retryAfterSeconds: 10 } }),
  );
  expect(refused).toBe(2);
  take('bob', ['acme']);
});

test('a watch of several tenants takes a place of each, or none', () => {
  const { take } = places();
  const giveBack = take('ann', ['small', 'acme']);
  for (let n = 0; n < 5; n += 1) expect(() => take('ann', ['acme', 'small'])).toThrow('small');
  giveBack();
  take('ann', ['small']);
  for (let n = 0; n < 3; n += 1) take('ann', ['acme']);
  expect(() => take('ann', ['acme'])).toThrow('acme');
});

test('what is given back twice is one place', () => {
  const { take } = places();
  const giveBack = take('ann', ['small']);
  giveBack();
  take('ann', ['small']);
  giveBack();
  expect(() => take('ann', ['small'])).toThrow('small');
});

test('who watches all tenants takes no place of any, but one of its own', () => {
  const { take } = places();
  for (let n = 0; n < 3; n += 1) take('ops', '*');
  expect(() => take('ops', '*')).toThrow('subject "ops"');
  take('other', '*');
  take('ann', ['small']);
});

test('of all tenants together no more than so many are open', () => {
  const { take } = places(2);
  const giveBack = take('ann', ['a']);
  take('ann', ['b']);
  expect(() => take('ann', ['c'])).toThrow('this server has 2 open watches');
  giveBack();
  take('ann', ['c']);
});
