import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import type { FinalizeResult } from '#core/reconcile/outcome.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<void>;
let finalize: (ctx: Context) => Promise<FinalizeResult>;
const outside = new Set<string>();
const kind = probeKind('Probe', {
  name: 'probe',
  reconcile: (ctx) => reconcile(ctx),
  finalize: (ctx) => finalize(ctx),
});

beforeAll(async () => {
  world = await prepareReconciling([kind]);
});
beforeEach(() => {
  outside.clear();
  reconcile = async (ctx) => {
    await ctx.act('make', async () => outside.add(ctx.object.metadata.name));
    await look(ctx);
  };
  finalize = async (ctx) => {
    await ctx.act('remove', async () => outside.delete(ctx.object.metadata.name));
    await look(ctx);
    return { finalized: true };
  };
});
afterEach(() => world.clear());
afterAll(() => world.close());

async function look(ctx: Context): Promise<void> {
  const { name } = ctx.object.metadata;
  await ctx.observe('thing', name, async () => (outside.has(name) ? name : undefined));
}

describe('a finalizer', () => {
  test('is stored before the first side effect, also of an object that is older than its controller', async () => {
    const old = probeKind('Old');
    await registerKinds(world.url, [old]);
    await world.sql`insert into plumbline.resource (tenant, api_group, kind, name) values ('acme', 'example.dev', 'Old', 'old')`;
    let finalizers: readonly string[] = [];
    const newer = probeKind('Old', {
      name: 'newer',
      async reconcile() {
        const [row] = await world.sql<
          { finalizers: string[] }[]
        >`select finalizers from plumbline.resource where name = 'old'`;
        finalizers = row?.finalizers ?? [];
      },
      finalize: async () => ({ finalized: true }),
    });
    await registerKinds(world.url, [newer]);
    const driver = world.driver({ kinds: [newer] });
    await driver.upkeep.fillItems('example.dev/newer');
    await world.makeAllDue();
    expect(await driver.run()).toBe(1);
    expect(finalizers).toEqual(['example.dev/newer']);
  });

  test('is there from the birth of the object on', async () => {
    const { metadata } = await world.create('Probe', 'newborn');
    expect(metadata.finalizers).toEqual(['example.dev/probe']);
  });
});

describe('a deletion', () => {
  test('requested while no driver runs is finished by the next one, and what was made is gone before the object', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    expect([...outside]).toEqual(['blue']);
    expect(await world.delete('Probe', 'blue')).toBe(false);
    expect(await world.driver().run()).toBe(1);
    expect([...outside]).toEqual([]);
    expect(await world.get('Probe', 'blue')).toBeUndefined();
  });

  test('wakes the controller though the spec is the same, and goes before everything else', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    await world.delete('Probe', 'blue');
    const item = await world.item('blue');
    expect(item?.class).toBe(0);
    expect(item?.dueInMs).toBeLessThanOrEqual(0);
  });

  test('in the middle of a pass is finalized after it, by a pass of its own', async () => {
    const [entered, release] = [gate(), gate()];
    const made = reconcile;
    reconcile = async (ctx) => {
      entered.open();
      await release.opened;
      await made(ctx);
    };
    await world.create('Probe', 'blue');
    const running = world.driver().run();
    await entered.opened;
    await world.delete('Probe', 'blue');
    release.open();
    expect(await running).toBe(2);
    expect([...outside]).toEqual([]);
    expect(await world.get('Probe', 'blue')).toBeUndefined();
  });

  test('never reaches reconcile again', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    reconcile = async () => {
      throw new Error('it is being deleted');
    };
    finalize = async () => ({ finalized: false, blocked: { reason: 'Busy', message: 'somebody is in there' } });
    await world.delete('Probe', 'blue');
    await world.driver().run();
    expect(await world.conditions('Probe', 'blue')).toEqual({ Ready: 'False Deleting', DeletionBlocked: 'True Busy' });
  });

  test.each<[string, (ctx: Context) => Promise<unknown>, RegExp]>([
    ['was not looked at', async () => undefined, /thing blue was not seen to be absent in this pass \(present\)/],
    ['is still there', look, /thing blue was not seen to be absent in this pass \(present\)/],
    [
      'could not be read',
      (ctx) => ctx.observe('thing', 'blue', () => Promise.reject(new Error('denied'))),
      /thing blue was not seen to be absent in this pass \(unknown\)/,
    ],
  ])('is not believed to be done while what was made %s', async (_what, before, words) => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    finalize = async (ctx) => {
      await before(ctx);
      return { finalized: true };
    };
    await world.delete('Probe', 'blue');
    const driver = world.driver();
    await driver.run();
    expect(driver.results.at(-1)?.result).toBe('error');
    const { conditions } = await world.status('Probe', 'blue');
    const blocked = conditions.find((each: { type: string }) => each.type === 'DeletionBlocked');
    expect(blocked).toMatchObject({ status: 'True', reason: 'FinalizeFailed' });
    expect(blocked.message).toMatch(words);
    expect([...outside]).toEqual(['blue']);
  });

  test('of something that stays outside, as the spec says, is believed', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    finalize = async (ctx) => {
      ctx.release('thing', 'blue');
      return { finalized: true };
    };
    await world.delete('Probe', 'blue');
    await world.driver().run();
    expect(await world.get('Probe', 'blue')).toBeUndefined();
    expect([...outside]).toEqual(['blue']);
  });

  test('that says nothing of its end is not done', async () => {
    await world.create('Probe', 'blue');
    // oxlint-disable-next-line typescript/no-explicit-any -- as JavaScript may
    finalize = async () => undefined as any;
    await world.delete('Probe', 'blue');
    await world.driver().run();
    expect(await world.conditions('Probe', 'blue')).toMatchObject({ DeletionBlocked: 'True FinalizeFailed' });
  });

  test('waits for a finalizer whose controller runs nowhere, which the status says', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    await world.delete('Probe', 'blue');
    await world.sql`update plumbline.controller set last_seen_at = '2020-01-01'`;
    await world.sql`alter table plumbline.resource disable trigger user`;
    await world.sql`update plumbline.resource set deletion_timestamp = '2020-01-02' where name = 'blue'`;
    await world.sql`alter table plumbline.resource enable trigger user`;
    const driver = world.driver({ kinds: [] });
    await driver.upkeep.reportBlockedDeletions();
    const { conditions } = await world.status('Probe', 'blue');
    const blocked = conditions.find((each: { type: string }) => each.type === 'DeletionBlocked');
    expect(blocked).toMatchObject({ status: 'True', reason: 'NoController' });
    expect(blocked.message).toMatch(/example\.dev\/probe, last seen 2020-01-01/);
    const before = await world.versions();
    await driver.upkeep.reportBlockedDeletions();
    expect(await world.versions()).toBe(before);
    await world.driver().run();
    expect(await world.get('Probe', 'blue')).toBeUndefined();
  });
});

describe('a paused object', () => {
  test('is not reconciled, which its status says, until it is not paused any more', async () => {
    await world.create('Probe', 'blue', {}, { annotations: { 'plumbline.dev/paused': 'true' } });
    const driver = world.driver();
    await driver.run();
    expect([...outside]).toEqual([]);
    expect(await world.conditions('Probe', 'blue')).toEqual({ Paused: 'True PausedByAnnotation' });
    expect(await world.status('Probe', 'blue')).not.toHaveProperty('observedGeneration', 1);
    await world.annotate('Probe', 'blue', { 'plumbline.dev/paused': null });
    await driver.run();
    expect([...outside]).toEqual(['blue']);
    expect(await world.conditions('Probe', 'blue')).toEqual({ Ready: 'True Reconciled' });
  });

  test('does not claim to have observed what was changed meanwhile', async () => {
    await world.create('Probe', 'blue', { value: 1 });
    const driver = world.driver();
    await driver.run();
    await world.annotate('Probe', 'blue', { 'plumbline.dev/paused': 'true' });
    await world.update('Probe', 'blue', { value: 2 });
    await driver.run();
    expect(await world.status('Probe', 'blue')).toMatchObject({ observedGeneration: 1 });
  });

  test('is finalized all the same', async () => {
    await world.create('Probe', 'blue');
    await world.driver().run();
    await world.annotate('Probe', 'blue', { 'plumbline.dev/paused': 'true' });
    await world.delete('Probe', 'blue');
    await world.driver().run();
    expect(await world.get('Probe', 'blue')).toBeUndefined();
    expect([...outside]).toEqual([]);
  });
});
