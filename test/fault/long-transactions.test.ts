import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { type ResumingWatcher, startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import { startWriters, type Writers } from '#test/fault/writers.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const ROWS = 20_000;
const OPEN_MS = 10_000;
/** 100 ms on two cores that do nothing else. Who waited for such a transaction would wait for seconds. */
const P99_LIMIT_MS = 500;
/** Where the machine is busy with other things, the same writers are slow without any transaction beside them. */
const BUSY_FACTOR = 8;
const BASELINE_WRITES = 100;

let database: TestDatabase;
let instance: LocalInstance;
let stranger: postgres.Sql;
/** The one that is watched, and the one with the large transaction. */
let calm: FaultTenant;
let busy: FaultTenant;
/** What the same load is told in without anything else. */
let baselineMs: number;

beforeAll(async () => {
  database = await createTestDatabase();
  instance = await startLocalInstance({ databaseUrl: database.url });
  stranger = postgres(database.url, { max: 1, onnotice: () => undefined });
  calm = await makeTenant(instance);
  busy = await makeTenant(instance);
  const watcher = watch(calm);
  await watcher.ready;
  const writers = write();
  await writers.more(BASELINE_WRITES);
  await writers.stop();
  await expectDelivered(watcher, writers.acknowledged);
  await watcher.stop();
  baselineMs = shareOf(latenciesMs(watcher), 0.99);
});

afterAll(async () => {
  await stranger.end({ timeout: 1 });
  await instance.stop();
  await database.drop();
});

function watch({ tenant, token }: FaultTenant): ResumingWatcher {
  const { baseUrl } = instance;
  return startResumingWatcher({ baseUrl: () => baseUrl, token, tenants: tenant });
}

/** About 50 writes a second. */
function write(): Writers {
  const { baseUrl } = instance;
  return startWriters({ baseUrl: () => baseUrl, ...calm, count: 2, pauseMs: 30 });
}

async function insert(sql: postgres.ISql, { tenant }: FaultTenant, prefix: string, rows: number): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select ${tenant}, 'example.dev', 'Widget', ${prefix} || n, jsonb_build_object('size', n % 1000)
    from generate_series(1, ${rows}::int) n`;
}

/** From the capture in the writer's transaction to the client, sorted. */
function latenciesMs({ events }: ResumingWatcher): number[] {
  return events.map(({ atMs, timeMs }) => performance.timeOrigin + atMs - timeMs).toSorted((a, b) => a - b);
}

function shareOf(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function expectUndelayed(name: string, watcher: ResumingWatcher): void {
  const latencies = latenciesMs(watcher);
  const [p50, p99, worst] = [0.5, 0.99, 1].map((share) => shareOf(latencies, share).toFixed(1));
  console.log(
    `${name}: ${latencies.length} events of others, p50 ${p50} ms, p99 ${p99} ms, worst ${worst} ms; p99 without it ${baselineMs.toFixed(1)} ms`,
  );
  expect(Number(p99)).toBeLessThan(Math.max(P99_LIMIT_MS, BUSY_FACTOR * baselineMs));
}

test(
  'a transaction of 20,000 rows of one tenant does not delay the events of another',
  { timeout: 90_000 },
  async () => {
    const [watcher, bulk] = [watch(calm), watch(busy)];
    await Promise.all([watcher.ready, bulk.ready]);
    const writers = write();
    await writers.more(20);
    const begin = performance.now();
    await insert(stranger, busy, 'bulk-', ROWS);
    const committedMs = performance.now() - begin;
    await bulk.until(() => bulk.events.length >= ROWS, 60_000);
    const deliveredMs = performance.now() - begin - committedMs;
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);
    expect(bulk.events.map(({ seq }) => seq)).toEqual(Array.from({ length: ROWS }, (_, index) => BigInt(index + 1)));
    expectUndelayed(
      `${ROWS} rows committed in ${Math.round(committedMs)} ms and delivered ${Math.round(deliveredMs)} ms later`,
      watcher,
    );
    await Promise.all([watcher.stop(), bulk.stop()]);
  },
);

test(
  'a transaction that a stranger holds open for 10 s delays nobody, in its own tenant and in others',
  { timeout: 60_000 },
  async () => {
    const [watcher, other] = [watch(calm), watch(busy)];
    await Promise.all([watcher.ready, other.ready]);
    const { promise: close, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: opened, resolve: markOpened } = Promise.withResolvers<void>();
    const transaction = stranger.begin(async (sql) => {
      // One row in each; and the oldest transaction id of all who write meanwhile.
      await insert(sql, calm, 'held-', 1);
      await insert(sql, busy, 'held-', 1);
      markOpened();
      await close;
    });
    await opened;
    const writers = write();
    await delay(OPEN_MS);
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);
    expect(writers.acknowledged.length).toBeGreaterThan(100);
    expectUndelayed(`a transaction open for ${OPEN_MS / 1000} s`, watcher);
    expect(other.events).toEqual([]);

    letGo();
    await transaction;
    await other.until(() => true);
    const before = writers.acknowledged.length;
    await watcher.until(() => watcher.events.length === before + 1);
    await Promise.all([watcher.stop(), other.stop()]);
  },
);
