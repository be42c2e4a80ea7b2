import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import type { Leases } from '#core/ports/leases.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const LONG_MS = 60_000;
const SHORT_MS = 50;

let database: PreparedDatabase;
let one: Leases;
let other: Leases;
let key: string;

beforeAll(async () => {
  database = await prepareDatabase([]);
  one = postgresLeases(database.sql, 'one');
  other = postgresLeases(database.sql, 'other');
});

afterAll(() => database.close());

beforeEach(() => {
  key = crypto.randomUUID();
});

test('a lease is held by one, until it is released', async () => {
  const lease = await one.acquire(key, LONG_MS);
  expect(await other.acquire(key, LONG_MS)).toBeUndefined();
  if (lease) await one.release(lease);
  expect((await other.acquire(key, LONG_MS))?.fencingToken).toBeGreaterThan(lease?.fencingToken ?? 0n);
});

test('a lease that was not renewed goes to another, and its first holder is told', async () => {
  const lost = await one.acquire(key, SHORT_MS);
  const taken = await vi.waitFor(async () => {
    const lease = await other.acquire(key, LONG_MS);
    if (!lease) throw new Error('still held');
    return lease;
  });
  expect(taken.fencingToken).toBeGreaterThan(lost?.fencingToken ?? 0n);
  if (!lost) throw new Error('no lease');
  expect(await one.renew(lost, LONG_MS)).toBe(false);
  await one.release(lost);
  expect(await one.acquire(key, LONG_MS)).toBeUndefined();
  expect(await other.renew(taken, LONG_MS)).toBe(true);
});

test('a lease that has expired cannot be renewed, even when nobody has taken it', async () => {
  const lease = await one.acquire(key, 1);
  if (!lease) throw new Error('no lease');
  await vi.waitFor(async () => {
    const [row] =
      await database.sql`select expires_at <= clock_timestamp() as over from plumbline.lease where key = ${key}`;
    expect(row?.['over']).toBe(true);
  });
  expect(await one.renew(lease, LONG_MS)).toBe(false);
});

test('a renewed lease is held for as long as it says', async () => {
  const lease = await one.acquire(key, LONG_MS);
  if (!lease) throw new Error('no lease');
  expect(await one.renew(lease, 1)).toBe(true);
  await vi.waitFor(async () => expect(await other.acquire(key, LONG_MS)).toBeDefined());
});

test('who takes its own lease again has a new token: the old one is worth nothing', async () => {
  const first = await one.acquire(key, LONG_MS);
  const second = await one.acquire(key, LONG_MS);
  if (!first || !second) throw new Error('no lease');
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  expect(await one.renew(first, LONG_MS)).toBe(false);
  expect(await one.renew(second, LONG_MS)).toBe(true);
});

test('of many that ask at once, one gets it', async () => {
  const contenders = Array.from({ length: 20 }, (_, index) => postgresLeases(database.sql, `contender-${index}`));
  const leases = await Promise.all(contenders.map((contender) => contender.acquire(key, LONG_MS)));
  expect(leases.filter((lease) => lease !== undefined).length).toBe(1);
});

test('nobody waits for one who is just taking it, nor for another key', async () => {
  const connection = database.connection();
  await connection`begin`;
  await connection`select plumbline.acquire_lease(${key}, 'slow', interval '1 minute')`;
  expect(await other.acquire(key, LONG_MS)).toBeUndefined();
  expect(await other.acquire(`${key}/other`, LONG_MS)).toBeDefined();
  await connection`rollback`;
  expect(await other.acquire(key, LONG_MS)).toBeDefined();
});

test('the token of a lease rises over all its holders', async () => {
  const tokens: bigint[] = [];
  for (const holder of ['a', 'b', 'a', 'c']) {
    const leases = postgresLeases(database.sql, holder);
    const lease = await leases.acquire(key, LONG_MS);
    if (!lease) throw new Error('no lease');
    tokens.push(lease.fencingToken);
    await leases.release(lease);
  }
  expect(tokens).toEqual([1n, 2n, 3n, 4n]);
});
