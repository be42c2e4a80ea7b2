import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as v from 'valibot';
import { defineKind, type Kind } from '#core/kind.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<void>;
const passes: string[] = [];
const child: Kind<{ size: number }> = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Child',
  plural: 'children',
  scope: 'Namespaced',
  spec: v.object({ size: v.number() }),
});
const parent = probeKind('Parent', {
  name: 'parent',
  async reconcile(ctx) {
    passes.push(ctx.object.metadata.name);
    return reconcile(ctx);
  },
});

beforeAll(async () => {
  world = await prepareReconciling([child, parent], ['acme', 'globex']);
});
afterEach(async () => {
  passes.length = 0;
  await world.clear();
});
afterAll(() => world.close());

async function applyOne(ctx: Context): Promise<void> {
  await ctx.children(child).apply('leaf', { spec: { size: ctx.object.spec['size'] }, labels: { of: 'tree' } });
}

test('a child that one pass made is seen by the next, and not made twice', async () => {
  const seen: (readonly string[])[] = [];
  reconcile = async (ctx) => {
    const children = await ctx.children(child).list();
    seen.push(children.map(({ metadata }) => metadata.name));
    if (children.length === 0) await applyOne(ctx);
  };
  await world.create('Parent', 'tree', { size: 1 });
  await world.driver().run();
  await world.makeAllDue();
  await world.driver().run();
  expect(seen).toEqual([[], ['leaf']]);
  const leaf = await world.get('Child', 'leaf');
  const { uid } = (await world.get('Parent', 'tree'))?.metadata ?? {};
  expect(leaf).toMatchObject({
    spec: { size: 1 },
    metadata: { labels: { of: 'tree' }, ownerReferences: [{ kind: 'Parent', name: 'tree', uid, controller: true }] },
  });
});

test('what a pass itself writes of its children does not wake it; a change by somebody else does', async () => {
  reconcile = applyOne;
  await world.create('Parent', 'tree', { size: 1 });
  expect(await world.driver().run()).toBe(1);
  await world.update('Parent', 'tree', { size: 2 });
  expect(await world.driver().run()).toBe(1);
  expect((await world.get('Child', 'leaf'))?.spec).toEqual({ size: 2 });
  await world.update('Child', 'leaf', { size: 99 });
  expect(await world.driver().run()).toBe(1);
  expect((await world.get('Child', 'leaf'))?.spec).toEqual({ size: 2 });
});

test('a child that is deleted by somebody wakes its owner, and comes back', async () => {
  reconcile = applyOne;
  await world.create('Parent', 'tree', { size: 1 });
  await world.driver().run();
  const before = (await world.get('Child', 'leaf'))?.metadata.uid;
  await world.delete('Child', 'leaf');
  await world.driver().run();
  const after = (await world.get('Child', 'leaf'))?.metadata.uid;
  expect(after).toBeDefined();
  expect(after).not.toBe(before);
});

test('a child of a stranger is left alone, and told as a conflict', async () => {
  reconcile = applyOne;
  await world.create('Child', 'leaf', { size: 7 });
  await world.create('Parent', 'tree', { size: 1 });
  await world.driver().run();
  expect((await world.get('Child', 'leaf'))?.spec).toEqual({ size: 7 });
  expect(await world.conditions('Parent', 'tree')).toMatchObject({ Ready: 'False OwnershipConflict' });
  reconcile = async (ctx) => ctx.children(child).remove('leaf');
  await world.makeAllDue();
  await world.driver().run();
  expect(await world.get('Child', 'leaf')).toBeDefined();
});

test('an invalid child is refused before it is written, by the field', async () => {
  reconcile = async (ctx) => ctx.children(child).apply('leaf', { spec: { size: 'large' as unknown as number } });
  await world.create('Parent', 'tree');
  await world.driver().run();
  const { conditions } = await world.status('Parent', 'tree');
  expect(conditions[0].message).toMatch(/the child Child "leaf" would be invalid: spec\.size: /);
});

test('a child that is not wanted any more is removed', async () => {
  reconcile = applyOne;
  await world.create('Parent', 'tree', { size: 1 });
  await world.driver().run();
  reconcile = async (ctx) => ctx.children(child).remove('leaf');
  await world.makeAllDue();
  await world.driver().run();
  expect(await world.get('Child', 'leaf')).toBeUndefined();
});

test.each<[string, (ctx: Context) => Promise<void>]>([
  ['made', applyOne],
  ['removed', (ctx) => ctx.children(child).remove('old')],
])('no child is %s by a pass that has lost its lease without knowing', async (_what, write) => {
  reconcile = async (ctx) => ctx.children(child).apply('old', { spec: { size: 1 } });
  await world.create('Parent', 'tree', { size: 1 });
  await world.driver().run();
  const [entered, release] = [gate(), gate()];
  reconcile = async (ctx) => {
    entered.open();
    await release.opened;
    await write(ctx);
  };
  await world.makeAllDue();
  const zombie = world.driver({ leaseMs: 3_600_000 });
  const running = zombie.run();
  await entered.opened;
  await world.sql`update plumbline.pass_lease set fencing_token = fencing_token + 1`;
  release.open();
  await running;
  expect(zombie.results).toMatchObject([{ result: 'fenced' }]);
  expect(await world.get('Child', 'leaf')).toBeUndefined();
  expect(await world.get('Child', 'old')).toBeDefined();
});

test('a pass sees the objects of its tenant alone', async () => {
  await world.create('Child', 'mine', { size: 1 });
  await world.create('Child', 'theirs', { size: 1 }, { tenant: 'globex' });
  let names: (string | undefined)[] = [];
  reconcile = async (ctx) => {
    names = (await ctx.list(child)).map(({ metadata }) => metadata.name);
    names.push((await ctx.get(child, 'theirs'))?.metadata.name);
  };
  await world.create('Parent', 'tree');
  await world.driver().run();
  expect(names).toEqual(['mine', undefined]);
});
