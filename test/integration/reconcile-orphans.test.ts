import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresOrphans } from '#adapters/postgres/orphans.ts';
import type { ExternalObject, OrphanSweep } from '#core/reconcile/sweep.ts';
import { runUpkeep, type UpkeepDeps } from '#functions/reconcile/run-upkeep.ts';
import { sweepOrphans, type SweepDeps } from '#functions/reconcile/sweep-orphans.ts';
import { prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const GONE = '00000000-0000-4000-8000-000000000001';

let world: Reconciling;
let outside: ExternalObject[];
let list: OrphanSweep['list'];
let beforeRemoval: () => Promise<void>;
const kind = probeKind('Probe', {
  name: 'probe',
  sweep: {
    parts: ['near', 'far'],
    list: (ctx, part) => list(ctx, part),
    async remove(object) {
      await beforeRemoval();
      outside = outside.filter((each) => each.id !== object.id);
    },
  },
});

beforeAll(async () => {
  world = await prepareReconciling([kind]);
});
beforeEach(() => {
  outside = [{ class: 'thing', id: 'lost', ownerUid: GONE }];
  list = async (_, part) => (part === 'near' ? outside : []);
  beforeRemoval = async () => undefined;
});
afterEach(async () => {
  await world.sql`delete from plumbline.orphan`;
  await world.clear();
});
afterAll(() => world.close());

function deps(graceMs: number): SweepDeps {
  const orphans = postgresOrphans(world.sql);
  const leases = postgresLeases(world.sql, crypto.randomUUID());
  return { orphans, leases, kinds: [kind], logger: silentLogger, installation: 'here', graceMs };
}

async function sweep(graceMs: number): Promise<number> {
  return sweepOrphans(deps(graceMs), new AbortController().signal);
}

async function known(): Promise<readonly unknown[]> {
  return (await world.sql`select external_id from plumbline.orphan`).map((row) => row['external_id'] as unknown);
}

test('what bears our marker and has no object goes, but not before it has been so for the grace time', async () => {
  expect(await sweep(60_000)).toBe(0);
  expect(await sweep(60_000)).toBe(0);
  expect(await known()).toEqual(['lost']);
  await world.sql`update plumbline.orphan set first_seen_at = first_seen_at - interval '1 minute'`;
  expect(await sweep(60_000)).toBe(1);
  expect(outside).toEqual([]);
  expect(await known()).toEqual([]);
});

test('what has an object stays, also while that is being deleted', async () => {
  const { metadata } = await world.create('Probe', 'owner');
  outside = [{ class: 'thing', id: 'kept', ownerUid: metadata.uid ?? '' }];
  expect(await sweep(0)).toBe(0);
  expect(await known()).toEqual([]);
});

test('the grace time begins anew for what was away, or had an object, in between', async () => {
  await sweep(60_000);
  await world.sql`update plumbline.orphan set first_seen_at = first_seen_at - interval '1 hour'`;
  const [all] = [outside];
  outside = [];
  await sweep(60_000);
  expect(await known()).toEqual([]);
  outside = all;
  expect(await sweep(60_000)).toBe(0);
});

test('a list that breaks off concludes nothing, neither that something is an orphan nor that it is none any more', async () => {
  await sweep(60_000);
  await world.sql`update plumbline.orphan set first_seen_at = first_seen_at - interval '1 hour'`;
  list = async () => {
    throw new Error('page 2 cannot be read');
  };
  expect(await sweep(60_000)).toBe(0);
  expect(await known()).toEqual(['lost']);
  expect(outside.length).toBe(1);
});

test('a part that cannot be listed holds up no other, and what is known of it stays', async () => {
  const far = [{ class: 'thing', id: 'lost', ownerUid: GONE }];
  list = async (_, part) => (part === 'near' ? outside : far);
  await sweep(60_000);
  await world.sql`update plumbline.orphan set first_seen_at = first_seen_at - interval '1 minute'`;
  list = async (_, part) => {
    if (part === 'far') throw new Error('it cannot be reached');
    return outside;
  };
  expect(await sweep(60_000)).toBe(1);
  expect(outside).toEqual([]);
  expect([...(await world.sql`select part, external_id as id from plumbline.orphan`)]).toEqual([
    { part: 'far', id: 'lost' },
  ]);
});

test('what was known of a part that is not looked at any more is forgotten', async () => {
  const orphans = postgresOrphans(world.sql);
  const elsewhere = { controller: kind.controllers[0]?.id ?? '', part: 'gone' };
  await orphans.note(elsewhere, outside, 60_000);
  expect(await known()).toEqual(['lost']);
  outside = [];
  await sweep(60_000);
  expect(await known()).toEqual([]);
});

test('it is asked once more, just before, whether there still is no object', async () => {
  const second = { class: 'thing', id: 'second', ownerUid: '00000000-0000-4000-8000-000000000002' };
  outside.push(second);
  // While the first is removed, the owner of the second comes back, as from a backup.
  beforeRemoval = async () => {
    beforeRemoval = async () => undefined;
    await world.sql`alter table plumbline.resource disable trigger user`;
    await world.sql`insert into plumbline.resource (uid, tenant, api_group, version, kind, name, resource_version, generation, creation_timestamp)
      values (${second.ownerUid}::text::uuid, 'acme', 'example.dev', 'v1', 'Probe', 'back', 1, 1, now())`;
    await world.sql`alter table plumbline.resource enable trigger user`;
  };
  expect(await sweep(0)).toBe(1);
  expect(outside).toEqual([second]);
});

test('one that cannot be removed holds up no other, and they go in the order of the list', async () => {
  const removed: string[] = [];
  outside = ['stuck', 'first', 'second'].map((id) => ({ class: 'thing', id, ownerUid: GONE }));
  const order = outside.map(({ id }) => id);
  beforeRemoval = async () => {
    const id = order.shift() ?? '';
    if (id === 'stuck') throw new Error('it is in use');
    removed.push(id);
  };
  expect(await sweep(0)).toBe(2);
  expect(removed).toEqual(['first', 'second']);
  expect(outside.map(({ id }) => id)).toEqual(['stuck']);
});

test('of several processes one sweeps at a time', async () => {
  const held = await postgresLeases(world.sql, 'other').acquire('orphan-sweep', 60_000);
  expect(await sweep(0)).toBe(0);
  expect(outside.length).toBe(1);
  if (held) await postgresLeases(world.sql, 'other').release(held);
  expect(await sweep(0)).toBe(1);
});

test.each([
  ['nothing is looked for unless the installation says so', undefined, 0],
  ['it is looked for when the installation says so', { everyMs: 60_000, graceMs: 60_000 }, 1],
])('%s', async (_what, sweeping, expected) => {
  let lists = 0;
  list = async () => {
    lists += 1;
    stop.abort();
    return outside;
  };
  const stop = new AbortController();
  const { upkeep } = world.driver();
  const after: UpkeepDeps['upkeep'] = {
    ...upkeep,
    async expireEvents() {
      await upkeep.expireEvents();
      if (!sweeping) stop.abort();
    },
  };
  const onError = (error: unknown): void => expect.fail(String(error));
  await runUpkeep({ ...deps(0), upkeep: after, sweep: sweeping, onError }, stop.signal);
  expect(lists).toBe(expected);
});
