import * as v from 'valibot';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { defineKind, type Kind } from '#core/kind.ts';
import { known } from '#core/reconcile/observation.ts';
import { StatusError } from '#core/status-error.ts';
import { startTcpProxy } from '#test/support/tcp-proxy.ts';
import { type Context, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

const SECRET = 'hunter2-hunter2';

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<void>;
const vault: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Vault',
  plural: 'vaults',
  scope: 'Namespaced',
  spec: v.looseObject({}),
  status: v.looseObject({}),
  redact: ['spec.password', 'status.key'],
  controllers: [{ name: 'vault', statusFields: ['key'], reconcile: (ctx) => reconcile(ctx as unknown as Context) }],
});

beforeAll(async () => {
  world = await prepareReconciling([vault, probeKind('Older')]);
});
beforeEach(() => {
  reconcile = async () => undefined;
  vi.spyOn(Math, 'random').mockReturnValue(0.9);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.clear();
});
afterAll(() => world.close());

describe('secrets', () => {
  test('are in the object of a pass, its own and those that it reported, and in nothing that it lists', async () => {
    const seen: unknown[] = [];
    reconcile = async (ctx) => {
      const listed = await ctx.list({ group: 'example.dev', kind: 'Vault' });
      seen.push(ctx.object.spec['password'], ctx.object.status['key'], listed[0]?.spec?.['password']);
      ctx.report('key', 'reported-key');
    };
    await world.create('Vault', 'safe', { password: SECRET });
    await world.driver().run();
    await world.makeAllDue();
    await world.driver().run();
    expect(seen).toEqual([SECRET, undefined, undefined, SECRET, 'reported-key', undefined]);
    expect(await world.status('Vault', 'safe')).not.toHaveProperty('key');
  });

  test('are in no condition and in no event, though an error quotes them', async () => {
    reconcile = async (ctx) => {
      ctx.event('Normal', 'Trying', `with ${SECRET}`);
      throw new Error(`cannot log in with ${SECRET}`);
    };
    await world.create('Vault', 'safe', { password: SECRET });
    await world.driver().run();
    const { conditions } = await world.status('Vault', 'safe');
    expect(conditions[0].message).toBe('cannot log in with ***');
    expect(await eventsOf()).toEqual(['Normal Trying with *** 1', 'Warning ReconcileFailed cannot log in with *** 1']);
    expect((await world.item('safe'))?.lastError).not.toContain(SECRET);
  });
});

describe('events', () => {
  test('that say the same are counted, and the oldest go beyond fifty', async () => {
    await world.create('Vault', 'safe');
    reconcile = async (ctx) => ctx.event('Normal', 'Seen', 'again');
    for (let pass = 0; pass < 3; pass++) {
      await world.makeAllDue();
      await world.driver().run();
    }
    expect(await eventsOf()).toEqual(['Normal Seen again 3']);
    reconcile = async (ctx) => {
      for (let n = 1; n <= 60; n++) ctx.event('Normal', 'Counted', String(n));
    };
    await world.makeAllDue();
    await world.driver().run();
    expect((await eventsOf()).length).toBe(50);
  });

  test('of a pass that was refused are not told', async () => {
    reconcile = async (ctx) => {
      ctx.event('Normal', 'Lost', '');
      await world.sql`update plumbline.pass_lease set fencing_token = fencing_token + 1`;
    };
    await world.create('Vault', 'safe');
    await world.driver().run();
    expect(await eventsOf()).toEqual([]);
  });
});

test('everything that was looked at is listed with what was seen, and what is known stays listed', async () => {
  let answer: () => Promise<string | undefined> = async () => 'there';
  reconcile = async (ctx) => void known(await ctx.observe('box', 'local/1', () => answer()), 'the box');
  await world.create('Vault', 'safe');
  const seen = async (): Promise<unknown> => {
    await world.makeAllDue();
    await world.driver().run();
    const { resources = [] } = await world.status('Vault', 'safe');
    return resources;
  };
  const box = { controller: 'example.dev/vault', class: 'box', id: 'local/1' };
  expect(await seen()).toMatchObject([{ ...box, state: 'present' }]);
  answer = () => Promise.reject(new Error('fog'));
  expect(await seen()).toMatchObject([{ ...box, state: 'unknown', message: 'fog' }]);
  answer = async () => undefined;
  expect(await seen()).toMatchObject([{ ...box, state: 'absent' }]);
  reconcile = async () => undefined;
  expect(await seen()).toMatchObject([box]);
});

test('all objects that are older than their controller are found, page by page; those being deleted are due at once', async () => {
  await world.sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
    select 'acme', 'example.dev', 'Older', 'o' || n, '{example.dev/held}' from generate_series(1, 2500) n`;
  await world.sql`update plumbline.resource set deletion_timestamp = now() where name = 'o77'`;
  const older = probeKind('Older', { name: 'older' });
  await registerKinds(world.url, [older]);
  const { upkeep } = world.driver({ kinds: [older] });
  await upkeep.fillItems('example.dev/older');
  const [counts] =
    await world.sql`select count(*)::int4 as items, count(*) filter (where class = 0 and due_at <= clock_timestamp())::int4 as deletions,
    max(due_at) < clock_timestamp() + interval '31 seconds' as "isSoon" from plumbline.work_item`;
  expect(counts).toEqual({ items: 2_500, deletions: 1, isSoon: true });
  await upkeep.fillItems('example.dev/older');
  expect(await world.sql`select from plumbline.work_item`).toHaveLength(2_500);
});

describe('while the store is away', () => {
  test('one run says so, and loses nothing; a driver that stays goes on when it is back', async () => {
    const { hostname, port } = new URL(world.url);
    const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
    const through = new URL(world.url);
    through.port = String(proxy.port);
    await proxy.refuse();
    await world.create('Vault', 'safe');
    const driver = world.driver({ databaseUrl: through.href });
    await expect(driver.run()).rejects.toThrow(StatusError);
    const staying = driver.stay();
    await vi.waitFor(() => expect(driver.errors.length).toBeGreaterThan(0), 10_000);
    await proxy.resume();
    await vi.waitFor(
      async () => expect(await world.conditions('Vault', 'safe')).toEqual({ Ready: 'True Reconciled' }),
      20_000,
    );
    await staying.stop();
    await proxy.stop();
  });
});

async function eventsOf(): Promise<readonly string[]> {
  const rows = await world.sql<{ line: string }[]>`
    select type || ' ' || reason || ' ' || message || ' ' || count as line from plumbline.object_event order by 1`;
  return rows.map(({ line }) => line);
}
