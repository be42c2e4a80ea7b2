import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<void>;
const order: string[] = [];
const record = async ({ object, tenant }: Context): Promise<void> =>
  void order.push(`${tenant}/${object.metadata.name}`);
const kind = probeKind('Probe', {
  name: 'probe',
  reconcile: (ctx) => reconcile(ctx),
  async finalize(ctx) {
    await record(ctx);
    return { finalized: true };
  },
});

beforeAll(async () => {
  world = await prepareReconciling([kind], ['acme', 'globex', 'initech']);
});
beforeEach(() => {
  order.length = 0;
  reconcile = record;
});
afterEach(() => world.clear());
afterAll(() => world.close());

async function createMany(tenant: string, count: number): Promise<void> {
  await world.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select ${tenant}, 'example.dev', 'Probe', 'p' || n from generate_series(1, ${count}::int) n`;
}

/** As though all had been looked at, and their resync came so many seconds ago. */
async function pollAll(seconds: number, itemClass: number): Promise<void> {
  await world.sql`update plumbline.work_item set class = ${itemClass}, due_at = clock_timestamp() - ${seconds} * interval '1 second'`;
}

/** Runs until one of this name has had its pass. @returns how many passes came before it. */
async function passesBefore(name: string, concurrency: number): Promise<number> {
  const driver = world.driver({ concurrency });
  const found = gate();
  reconcile = async (ctx) => {
    await record(ctx);
    if (order.includes(name)) found.open();
  };
  const staying = driver.stay();
  await found.opened;
  await staying.stop();
  return order.indexOf(name);
}

test('a tenant with 5,000 due objects delays the new object of another by no more than their turns', async () => {
  await createMany('acme', 5_000);
  await world.create('Probe', 'new', {}, { tenant: 'globex' });
  expect(await passesBefore('globex/new', 1)).toBeLessThanOrEqual(2);
});

test('tenants take turns, however much each has to do', async () => {
  await createMany('acme', 300);
  await createMany('globex', 300);
  await createMany('initech', 30);
  const driver = world.driver({ concurrency: 3 });
  const enough = gate();
  reconcile = async (ctx) => {
    await record(ctx);
    if (order.length >= 60) enough.open();
  };
  const staying = driver.stay();
  await enough.opened;
  await staying.stop();
  const first = order.slice(0, 60);
  for (const tenant of ['acme', 'globex', 'initech']) {
    expect(first.filter((each) => each.startsWith(`${tenant}/`)).length, tenant).toBeGreaterThanOrEqual(15);
  }
});

test('a new object comes first while 10,000 others are due to be looked at again', async () => {
  await createMany('acme', 10_000);
  await pollAll(1, 3);
  await world.create('Probe', 'new');
  expect(await passesBefore('acme/new', 4)).toBeLessThan(4);
});

test('a new object is picked up soon by a driver that is busy with 10,000 others', async () => {
  await createMany('acme', 10_000);
  await pollAll(1, 2);
  const [busy, found] = [gate(), gate()];
  reconcile = async (ctx) => {
    await record(ctx);
    if (order.length > 50) busy.open();
    if (ctx.object.metadata.name === 'new') found.open();
  };
  const staying = world.driver({ concurrency: 4 }).stay();
  await busy.opened;
  await world.create('Probe', 'new');
  const before = order.length;
  await found.opened;
  expect(order.indexOf('acme/new') - before).toBeLessThan(200);
  await staying.stop();
});

test('deletions come before changes, changes before timers, timers before resync', async () => {
  for (const name of ['resync', 'timer', 'change', 'deletion']) await world.create('Probe', name);
  await world.driver().run();
  await pollAll(0, 3);
  await world.sql`update plumbline.work_item set class = 2 where uid = (select uid from plumbline.resource where name = 'timer')`;
  await world.update('Probe', 'change', { value: 2 });
  await world.delete('Probe', 'deletion');
  order.length = 0;
  // No room is given to what is overdue.
  await world.driver({ concurrency: 1 }).run();
  expect(order).toEqual(['acme/deletion', 'acme/change', 'acme/timer', 'acme/resync']);
});

test('what has been overdue for long gets its share of the room beside a flood of changes', async () => {
  await createMany('acme', 20);
  await pollAll(60, 3);
  await createMany('globex', 2_000);
  const driver = world.driver({ concurrency: 8 });
  const enough = gate();
  reconcile = async (ctx) => {
    await record(ctx);
    if (order.length >= 160) enough.open();
  };
  const staying = driver.stay();
  await enough.opened;
  await staying.stop();
  const overdue = order.slice(0, 160).filter((each) => each.startsWith('acme/')).length;
  expect(overdue).toBeGreaterThanOrEqual(10);
});

test('a driver that sleeps is woken by a change, and by the time of a timer', async () => {
  const driver = world.driver();
  const staying = driver.stay();
  await world.create('Probe', 'blue');
  await vi.waitFor(() => expect(order).toEqual(['acme/blue']), 5_000);
  reconcile = async (ctx) => {
    await record(ctx);
    if (order.length < 3) throw new Error('again, soon');
  };
  vi.spyOn(Math, 'random').mockReturnValue(0.05);
  await world.update('Probe', 'blue', { value: 2 });
  await vi.waitFor(() => expect(order.length).toBe(3), 5_000);
  vi.restoreAllMocks();
  await staying.stop();
});
