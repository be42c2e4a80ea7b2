import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import type { FinalizeResult } from '#core/reconcile/outcome.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

type Deeds = { reconcile: (ctx: Context) => Promise<void>; finalize: () => Promise<FinalizeResult> };

let world: Reconciling;
let network: Deeds;
let disk: Deeds;
const kind = probeKind(
  'Machine',
  {
    name: 'network',
    summary: 'NetworkReady',
    statusFields: ['address'],
    reconcile: (ctx) => network.reconcile(ctx),
    finalize: () => network.finalize(),
  },
  {
    name: 'disk',
    summary: 'DiskReady',
    conditions: ['Formatted'],
    statusFields: ['size'],
    reconcile: (ctx) => disk.reconcile(ctx),
    finalize: () => disk.finalize(),
  },
);
/** Of a program of another version. */
const onlyDisk = probeKind('Machine', {
  name: 'disk',
  summary: 'DiskReady',
  reconcile: (ctx) => disk.reconcile(ctx),
});

beforeAll(async () => {
  world = await prepareReconciling([kind]);
});
beforeEach(() => {
  const good = (): Deeds => ({ reconcile: async () => undefined, finalize: async () => ({ finalized: true }) });
  [network, disk] = [good(), good()];
});
afterEach(() => world.clear());
afterAll(() => world.close());

test('two controllers of one kind report side by side, each its own', async () => {
  network.reconcile = async (ctx) => {
    ctx.report('address', '10.0.0.1');
    await ctx.observe('port', 'p1', async () => 'up');
  };
  disk.reconcile = async (ctx) => {
    ctx.report('size', 5);
    ctx.condition('Formatted', 'True', 'Ext4');
    await ctx.observe('volume', 'v1', async () => 'there');
  };
  await world.create('Machine', 'm');
  await world.driver().run();
  expect(await world.status('Machine', 'm')).toMatchObject({
    address: '10.0.0.1',
    size: 5,
    resources: [
      { controller: 'example.dev/disk', class: 'volume', id: 'v1', state: 'present' },
      { controller: 'example.dev/network', class: 'port', id: 'p1', state: 'present' },
    ],
  });
  expect(await world.conditions('Machine', 'm')).toEqual({
    DiskReady: 'True Reconciled',
    Formatted: 'True Ext4',
    NetworkReady: 'True Reconciled',
  });
});

test('one of them that fails fails alone', async () => {
  disk.reconcile = async () => {
    throw new Error('no space');
  };
  await world.create('Machine', 'm');
  await world.driver().run();
  expect(await world.conditions('Machine', 'm')).toEqual({
    DiskReady: 'False ReconcileFailed',
    NetworkReady: 'True Reconciled',
  });
  expect((await world.item('m', 'example.dev/network'))?.attempts).toBe(0);
  expect((await world.item('m', 'example.dev/disk'))?.attempts).toBeGreaterThan(0);
});

test('they never work on one object at the same time, over two processes', async () => {
  const [entered, release] = [gate(), gate()];
  let running = 0;
  let most = 0;
  const slow = async (): Promise<void> => {
    most = Math.max(most, (running += 1));
    entered.open();
    await release.opened;
    running -= 1;
  };
  [network.reconcile, disk.reconcile] = [slow, slow];
  await world.create('Machine', 'm');
  const one = world.driver().run();
  await entered.opened;
  expect(await world.driver().run()).toBe(0);
  release.open();
  await one;
  await world.driver().run();
  expect(most).toBe(1);
  expect(Object.keys(await world.conditions('Machine', 'm')).toSorted()).toEqual(['DiskReady', 'NetworkReady']);
});

test('the generation that is told as observed is the one that all of them have seen', async () => {
  await world.create('Machine', 'm', { value: 1 });
  await world.driver().run();
  await world.update('Machine', 'm', { value: 2 });
  await world.driver({ kinds: [onlyDisk] }).run();
  expect(await world.status('Machine', 'm')).toMatchObject({ observedGeneration: 1 });
  await world.driver().run();
  expect(await world.status('Machine', 'm')).toMatchObject({ observedGeneration: 2 });
});

test('an object that is deleted waits for all of them, and says of each why', async () => {
  network.finalize = async () => ({ finalized: false, blocked: { reason: 'CablesIn', message: 'unplug it' } });
  disk.finalize = async () => ({ finalized: false, blocked: { reason: 'Mounted', message: 'unmount it' } });
  await world.create('Machine', 'm');
  await world.driver().run();
  await world.delete('Machine', 'm');
  await world.driver().run();
  const blocked = await blockedOf('m');
  expect(blocked.message).toBe('example.dev/disk: unmount it; example.dev/network: unplug it');
  disk.finalize = async () => ({ finalized: true });
  await world.makeAllDue();
  await world.driver().run();
  expect((await world.get('Machine', 'm'))?.metadata.finalizers).toEqual(['example.dev/network']);
  expect((await blockedOf('m')).message).toBe('example.dev/network: unplug it');
  network.finalize = async () => ({ finalized: true });
  await world.makeAllDue();
  await world.driver().run();
  expect(await world.get('Machine', 'm')).toBeUndefined();
});

test('a program leaves the items of controllers that it does not have to those that have them', async () => {
  await world.create('Machine', 'm');
  expect(await world.driver({ kinds: [onlyDisk] }).run()).toBe(1);
  expect(await world.conditions('Machine', 'm')).toEqual({ DiskReady: 'True Reconciled' });
  expect(await world.item('m', 'example.dev/network')).toMatchObject({ class: 1 });
  await world.driver().run();
  expect(await world.conditions('Machine', 'm')).toMatchObject({ NetworkReady: 'True Reconciled' });
});

test('a controller that would write what another one writes is refused when it is registered', async () => {
  const rival = probeKind('Machine', { name: 'rival', summary: 'DiskReady', statusFields: ['address'] });
  await world.sql`update plumbline.controller set last_seen_at = clock_timestamp()`;
  await expect(registerKinds(world.url, [rival])).rejects.toThrow(/both report/);
});

test('a controller that a new version does not have any more holds nobody back from having observed', async () => {
  await world.create('Machine', 'm', { value: 1 });
  await world.driver().run();
  await world.update('Machine', 'm', { value: 2 });
  await world.sql`update plumbline.controller set last_seen_at = '-infinity'`;
  await world.driver({ kinds: [onlyDisk] }).run();
  expect(await world.status('Machine', 'm')).toMatchObject({ observedGeneration: 2 });
});

async function blockedOf(name: string): Promise<{ readonly reason: string; readonly message: string }> {
  const { conditions } = await world.status('Machine', name);
  return conditions.find((each: { type: string }) => each.type === 'DeletionBlocked');
}
