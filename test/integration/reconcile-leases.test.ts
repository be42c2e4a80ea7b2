import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { enterableFolder, quiet } from '#test/support/embedded.ts';
import { openConnection } from '#test/support/prepared-database.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

const SHORT_MS = 600;

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<void>;
const kind = probeKind('Probe', {
  name: 'probe',
  statusFields: ['by'],
  reconcile: (ctx) => reconcile(ctx),
});

beforeAll(async () => {
  world = await prepareReconciling([kind]);
});
beforeEach(() => {
  reconcile = async () => undefined;
});
afterEach(() => world.clear());
afterAll(() => world.close());

/** Reports that wait in the middle of their pass: the first one until it is let go. */
function oneThatStalls(): { readonly entered: Promise<void>; letGo(): void; readonly tokens: bigint[] } {
  const [entered, release] = [gate(), gate()];
  const tokens: bigint[] = [];
  reconcile = async (ctx) => {
    tokens.push(ctx.fencingToken);
    const turn = tokens.length;
    if (turn === 1) {
      entered.open();
      await release.opened;
    }
    ctx.report('by', turn);
  };
  return { entered: entered.opened, letGo: release.open, tokens };
}

describe('a pass whose lease ran out while it was frozen', () => {
  test('writes nothing once another has begun, and that is noted', async () => {
    const stalled = oneThatStalls();
    await world.create('Probe', 'blue');
    // With room for no other, it does not claim the object again itself.
    const zombie = world.driver({ leaseMs: 3_600_000, concurrency: 1 });
    const running = zombie.run();
    await stalled.entered;
    await world.expireLeases();
    await world.driver().run();
    stalled.letGo();
    await running;
    expect(zombie.results).toEqual([{ controller: 'example.dev/probe', result: 'fenced' }]);
    expect(await world.status('Probe', 'blue')).toMatchObject({ by: 2 });
    expect(stalled.tokens).toEqual([1n, 2n]);
    const fenced = await world.sql`select controller, fencing_token, deed from plumbline.fenced_write`;
    expect(fenced).toEqual([{ controller: 'example.dev/probe', fencing_token: 1n, deed: 'finish' }]);
  });

  test('is told by its signal, at the next renewal', async () => {
    let reason: unknown;
    const entered = gate();
    reconcile = async ({ signal }) => {
      entered.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      reason = signal.reason;
    };
    await world.create('Probe', 'blue');
    const driver = world.driver({ leaseMs: SHORT_MS });
    const running = driver.run();
    await entered.opened;
    await world.sql`update plumbline.pass_lease set fencing_token = fencing_token + 1, expires_at = clock_timestamp() + interval '1 minute'`;
    await running;
    expect(reason).toMatchObject({ name: 'LeaseLost' });
    expect(driver.results).toMatchObject([{ result: 'fenced' }]);
  });

  test('is told at once when the next one begins in the same process', async () => {
    let reason: unknown;
    const entered = gate();
    reconcile = async ({ signal }) => {
      reconcile = async (next) => next.report('by', 'the next');
      entered.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      reason = signal.reason;
    };
    await world.create('Probe', 'blue');
    const driver = world.driver({ leaseMs: 3_600_000 });
    const staying = driver.stay();
    await entered.opened;
    await world.expireLeases();
    await world.annotate('Probe', 'blue', { wake: 'up' });
    await vi.waitFor(() => expect(reason).toMatchObject({ name: 'LeaseLost' }), 5_000);
    await staying.stop();
    expect(await world.status('Probe', 'blue')).toMatchObject({ by: 'the next' });
  });

  test('cannot act any more, though nobody could tell it', async () => {
    let acted = false;
    const entered = gate();
    reconcile = async (ctx) => {
      reconcile = async (next) => next.report('by', 'the next');
      entered.open();
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      await ctx.act('too late', async () => (acted = true));
    };
    await world.create('Probe', 'blue');
    const driver = world.driver({ leaseMs: SHORT_MS });
    const running = driver.run();
    await entered.opened;
    const locker = openConnection(world.url);
    await locker`begin`;
    await locker`lock table plumbline.pass_lease in access exclusive mode`;
    await leaseIsOver(locker);
    await locker`rollback`;
    await locker.end();
    await running;
    expect(acted).toBe(false);
    expect(driver.results).toMatchObject([{ result: 'fenced' }, { result: 'done' }]);
    expect(await world.status('Probe', 'blue')).toMatchObject({ by: 'the next' });
  });
});

/** Resolves when the lease that there is has run out, or would have if it had not been renewed. */
async function leaseIsOver(sql: Sql): Promise<void> {
  const [lease] = await sql`select expires_at from plumbline.pass_lease`;
  await vi.waitFor(async () => {
    const [now] = await sql`select clock_timestamp() > ${lease?.['expires_at']} as "isOver"`;
    expect(now?.['isOver']).toBe(true);
  }, 5_000);
}

describe('a lease', () => {
  test('is renewed for as long as its pass takes, so nobody else begins', async () => {
    const stalled = oneThatStalls();
    await world.create('Probe', 'blue');
    const driver = world.driver({ leaseMs: SHORT_MS });
    const running = driver.run();
    await stalled.entered;
    await leaseIsOver(world.sql);
    expect(await world.driver().run()).toBe(0);
    stalled.letGo();
    await running;
    expect(driver.results).toEqual([{ controller: 'example.dev/probe', result: 'done' }]);
    expect(await world.status('Probe', 'blue')).toMatchObject({ by: 1 });
  });

  test('that its holder never gave back is told to the next one, once it is over', async () => {
    await world.create('Probe', 'blue');
    const [pass] = await world.driver({ leaseMs: 100 }).queue.claim(['example.dev/probe'], 1);
    expect(pass).toMatchObject({ wasAbandoned: false, fencingToken: 1n });
    const { queue } = world.driver();
    const next = await vi.waitFor(async () => {
      const [claimed] = await queue.claim(['example.dev/probe'], 1);
      if (!claimed) throw new Error('still held');
      return claimed;
    }, 5_000);
    expect(next).toMatchObject({ wasAbandoned: true, fencingToken: 2n });
  });

  test('is taken by one of many that claim at once, for each object', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, index) => world.create('Probe', `p${index}`)));
    const drivers = Array.from({ length: 3 }, () => world.driver());
    await Promise.all(drivers.map((driver) => driver.run()));
    expect(drivers.flatMap(({ results }) => results).length).toBe(60);
  });
});

describe('a process that is asked to stop', () => {
  test('begins nothing more, and finishes what it has begun', async () => {
    const stalled = oneThatStalls();
    await world.create('Probe', 'blue');
    const driver = world.driver({ concurrency: 1 });
    const staying = driver.stay();
    await stalled.entered;
    await world.create('Probe', 'green');
    const stopped = staying.stop();
    stalled.letGo();
    await stopped;
    expect(driver.results.length).toBe(1);
    expect(await world.status('Probe', 'blue')).toMatchObject({ by: 1 });
    expect(await world.sql`select from plumbline.pass_lease where expires_at > clock_timestamp()`).toEqual([]);
    expect(await world.driver().run()).toBe(1);
  });

  test('at once leaves its passes to others: they begin again, and are not counted as failed', async () => {
    const entered = gate();
    reconcile = async ({ signal }) => {
      entered.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      throw new Error('it was told to end');
    };
    await world.create('Probe', 'blue');
    const stop = new AbortController();
    const running = runOnce(world.driver(), { budgetMs: 30_000, signal: stop.signal });
    await entered.opened;
    stop.abort();
    await running;
    expect(await world.item('blue')).toMatchObject({ attempts: 0, lastError: null, class: 1 });
    reconcile = async (ctx) => ctx.report('by', 'the next');
    expect(await world.driver().run()).toBe(1);
  });
});

describe('a process that dies with passes that it has claimed', () => {
  const NAME = ['example.dev/probe'];
  beforeEach(() => {
    reconcile = async (ctx) => ctx.report('by', 'the next');
  });

  test('delays these alone: other objects are reconciled at once, also those that it had looked at', async () => {
    for (let i = 0; i < 5; i++) await world.create('Probe', `blue-${i}`);
    const claimed = await world.driver({ leaseMs: 3_600_000 }).queue.claim(NAME, 2);
    expect(claimed.length).toBe(2);
    expect(await world.driver().run()).toBe(3);
  });

  test('whoever asks is told when they can be had, and nothing else is due', async () => {
    await world.create('Probe', 'blue');
    const { queue } = world.driver({ leaseMs: 60_000 });
    expect((await queue.claim(NAME, 1)).length).toBe(1);
    const afterMs = await queue.nextDueMs(NAME);
    expect(afterMs).toBeGreaterThan(30_000);
    expect(afterMs).toBeLessThanOrEqual(60_000);
  });

  test('a timer that comes before their leases end waits for them, one that comes later does not come earlier', async () => {
    for (const name of ['soon', 'late']) await world.create('Probe', name);
    await world.driver().run();
    await world.sql`update plumbline.work_item set class = 2, due_at = clock_timestamp()`;
    const { queue } = world.driver({ leaseMs: 60_000 });
    expect((await queue.claim(NAME, 2)).length).toBe(2);
    const dueIn = (name: string, after: string) => world.sql`
      update plumbline.work_item w set due_at = clock_timestamp() + ${after}::interval from plumbline.resource r
      where r.uid = w.uid and r.name = ${name}`;
    await dueIn('late', '1 hour');
    await dueIn('soon', '5 seconds');
    expect(await queue.nextDueMs(NAME)).toBeGreaterThan(30_000);
    await dueIn('soon', '2 hours');
    const afterMs = await queue.nextDueMs(NAME);
    expect(afterMs).toBeGreaterThan(3_500_000);
    expect(afterMs).toBeLessThanOrEqual(3_600_000);
  });
});

test('a pass whose PostgreSQL is killed in the middle is finished when it is back, without being repeated', async () => {
  const dataDir = await enterableFolder();
  const server = await startEmbeddedPostgres({ dataDir, log: quiet });
  await migrate(server.url);
  const restarted = await prepareReconciling([kind], ['acme'], {
    url: server.url,
    async drop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
  const stalled = oneThatStalls();
  await restarted.create('Probe', 'blue');
  const driver = restarted.driver();
  const staying = driver.stay();
  await stalled.entered;
  process.kill(server.pid, 'SIGKILL');
  stalled.letGo();
  await vi.waitFor(async () => expect(await restarted.status('Probe', 'blue')).toMatchObject({ by: 1 }), 20_000);
  expect(stalled.tokens).toEqual([1n]);
  await restarted.update('Probe', 'blue', { value: 2 });
  await vi.waitFor(async () => expect(await restarted.status('Probe', 'blue')).toMatchObject({ by: 2 }), 20_000);
  await staying.stop();
  await restarted.close();
});
