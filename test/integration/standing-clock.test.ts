/** Scheduled runs where the clock stands still while code runs. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import type { WorkQueue } from '#core/ports/work-queue.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { busyKinds, makeBusy, whatCameOf } from '#test/support/busy-objects.ts';
import { type FencedThings, fencedThings } from '#test/support/fenced-things.ts';
import { prepareReconciling, type Reconciling, type TestDriver } from '#test/support/reconciling.ts';
import { standStill } from '#test/support/standing-clock.ts';

const BUDGET_MS = 30_000;
const SHORT_LEASE_MS = 200;

let world: Reconciling;
let driver: TestDriver;
let things: FencedThings;

beforeAll(async () => {
  world = await prepareReconciling(busyKinds(fencedThings().as('nobody')));
  driver = world.driver();
  await postgresRetention(world.sql).prepare();
});
beforeEach(() => {
  things = fencedThings();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.clear();
});
afterAll(() => world.close());

const run = (budgetMs = BUDGET_MS, deps = { ...driver, kinds: busyKinds(things.as('it')) }): Promise<number> =>
  runOnce(deps, { budgetMs });

/** It never reaches the time at which it would end if nothing but code ran. */
function computeFor(milliseconds: number): void {
  const end = process.hrtime.bigint() + BigInt(milliseconds) * 1_000_000n;
  while (process.hrtime.bigint() < end);
}

test('the clock of these tests stands still while code runs, and moves on', async () => {
  standStill();
  const before = performance.now();
  computeFor(5);
  expect(performance.now()).toBe(before);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(performance.now()).toBeGreaterThan(before);
});

test('a run of passes and one of the publisher do all that is due', async () => {
  await makeBusy(world, run);
  await run();
  const peace = await whatCameOf(world, things);
  await world.clear();
  things = fencedThings();
  standStill();
  await makeBusy(world, run);
  await run();
  expect(await whatCameOf(world, things)).toEqual(peace);
  expect(await publishOnce({ outbox: postgresOutbox(driver.sql) })).toBeGreaterThan(0);
  expect(await world.sql`select from plumbline.outbox`).toHaveLength(0);
});

test('a budget ends a run whose passes do nothing but compute', async () => {
  await world.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'acme', 'example.dev', 'Probe', 'p-' || n from generate_series(1, 30) n`;
  const kinds = busyKinds({
    ...things.as('it'),
    async begin() {
      computeFor(20);
    },
  });
  standStill();
  const passes = await run(100, { ...driver, kinds, concurrency: 1 });
  expect(passes).toBeLessThan(30);
  expect(await world.sql`select from plumbline.pass_lease where expires_at > clock_timestamp()`).toHaveLength(0);
});

test('who has computed for longer than its lease holds does not act any more', async () => {
  await world.create('Probe', 'blue');
  let hasActed = false;
  const late = {
    ...things.as('late'),
    async read(): Promise<undefined> {
      computeFor(2 * SHORT_LEASE_MS);
    },
    async put() {
      hasActed = true;
    },
  };
  const short = world.driver({ leaseMs: SHORT_LEASE_MS });
  standStill();
  const kinds = busyKinds(late);
  expect(await run(BUDGET_MS, { ...short, kinds, queue: onceOnly(short.queue) })).toBe(1);
  expect(hasActed).toBe(false);
  expect(short.results).toEqual([{ controller: 'example.dev/probe', result: 'fenced' }]);
});

/** A queue that has something once. */
function onceOnly(queue: WorkQueue): WorkQueue {
  let hasClaimed = false;
  return {
    ...queue,
    async claim(...args) {
      const claimed = hasClaimed ? [] : await queue.claim(...args);
      hasClaimed ||= claimed.length > 0;
      return claimed;
    },
  };
}

test('a stream that cannot be published is left alone, and does not keep the run for ever', async () => {
  const outbox = postgresOutbox(driver.sql);
  await publishOnce({ outbox });
  await world.create('Source', 'one');
  standStill();
  const errors: unknown[] = [];
  const failing = {
    ...outbox,
    async publishBatch(): Promise<never> {
      throw new Error('it cannot');
    },
  };
  expect(await publishOnce({ outbox: failing, onStreamError: (_, error) => errors.push(error) })).toBe(0);
  expect(errors).toHaveLength(1);
  expect(await publishOnce({ outbox })).toBe(1);
});
