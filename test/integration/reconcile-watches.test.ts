import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { WatchTarget } from '#core/reconcile/controller.ts';
import type { ResourceObject } from '#core/resource.ts';
import { prepareReconciling, probeKind, type Reconciling, type TestDriver } from '#test/support/reconciling.ts';

let world: Reconciling;
let driver: TestDriver;
let map: (object: ResourceObject) => readonly WatchTarget[] | Promise<readonly WatchTarget[]>;
const passes: string[] = [];
const mapped: unknown[] = [];
const source = probeKind('Source');
const reader = probeKind('Reader', {
  name: 'reader',
  watches: [
    {
      kind: source,
      map(object) {
        mapped.push(object.spec?.['reader']);
        return map(object);
      },
    },
  ],
  reconcile: async ({ object }) => void passes.push(object.metadata.name),
});

beforeAll(async () => {
  world = await prepareReconciling([source, reader], ['acme', 'globex']);
});
beforeEach(async () => {
  map = ({ spec }) => [{ name: String(spec?.['reader']) }];
  driver = world.driver();
  await world.create('Reader', 'one');
  await world.create('Reader', 'two');
  await driver.run();
  passes.length = 0;
  mapped.length = 0;
});
afterEach(() => world.clear());
afterAll(() => world.close());

test('a change of a watched object causes a pass of whom it concerns, and of nobody else', async () => {
  await world.create('Source', 'a', { reader: 'one' });
  await driver.run();
  expect(passes).toEqual(['one']);
});

test('an object that points elsewhere now concerns whom it pointed at before, too', async () => {
  await world.create('Source', 'a', { reader: 'one' });
  await driver.run();
  passes.length = 0;
  await world.update('Source', 'a', { reader: 'two' });
  await driver.run();
  expect(passes.toSorted()).toEqual(['one', 'two']);
});

test('a deletion concerns whom the last state points at', async () => {
  await world.create('Source', 'a', { reader: 'one' });
  await driver.run();
  passes.length = 0;
  await world.delete('Source', 'a');
  await driver.run();
  expect(passes).toEqual(['one']);
});

test('several changes for one object cause one pass', async () => {
  for (const name of ['a', 'b', 'c']) await world.create('Source', name, { reader: 'one' });
  await driver.run();
  expect(passes).toEqual(['one']);
});

test('a process that dies after it has mapped, and before that is written, loses nothing: it is mapped again', async () => {
  await world.create('Source', 'a', { reader: 'one' });
  const [change] = await driver.queue.watchChanges(['example.dev/reader'], 10);
  if (!change) throw new Error('no change was kept');
  await map(change.object);
  await world.driver().run();
  expect(mapped).toEqual(['one']);
  expect(passes).toEqual(['one']);
  expect(await world.sql`select from plumbline.watch_change`).toEqual([]);
});

test.each<[string, () => readonly WatchTarget[] | Promise<readonly WatchTarget[]>]>([
  [
    'throws',
    () => {
      throw new Error('no idea');
    },
  ],
  ['never ends', () => new Promise(() => undefined)],
  ['returns a number', () => 5 as never],
  ['returns what names nothing', () => [null] as never],
])('a map that %s holds its own change back and nothing else, until it can be mapped', async (_what, returned) => {
  map = ({ metadata, spec }) => (metadata.name === 'bad' ? returned() : [{ name: String(spec?.['reader']) }]);
  await world.create('Source', 'bad', { reader: 'one' });
  await world.create('Source', 'good', { reader: 'two' });
  await driver.run();
  expect(passes).toEqual(['two']);
  expect(driver.errors[0]).toMatchObject({
    message: 'map() of controller example.dev/reader failed for Source "bad"; it is tried again',
  });
  map = ({ spec }) => [{ name: String(spec?.['reader']) }];
  await world.sql`update plumbline.watch_change set due_at = '-infinity'`;
  await driver.run();
  expect(passes).toEqual(['two', 'one']);
});

test('a map that never ends holds up no pass of a driver that stays', async () => {
  map = () => new Promise(() => undefined);
  await world.create('Source', 'bad', { reader: 'one' });
  const staying = world.driver();
  const stop = staying.stay();
  await world.create('Reader', 'three');
  await vi.waitFor(() => expect(passes).toContain('three'), 4_000);
  await stop.stop();
});

test('changes of another tenant concern nobody by name, and by uid whom they name', async () => {
  await world.create('Source', 'theirs', { reader: 'one' }, { tenant: 'globex' });
  await driver.run();
  expect(passes).toEqual([]);
  const { uid = '' } = (await world.get('Reader', 'two'))?.metadata ?? {};
  map = () => [{ uid }];
  await world.create('Source', 'by-uid', {}, { tenant: 'globex' });
  await driver.run();
  expect(passes).toEqual(['two']);
});

test.each<[string, readonly WatchTarget[]]>([
  ['a name that nobody has', [{ name: 'nobody' }]],
  ['a uid that is none', [{ uid: 'x' }]],
  ['nobody', []],
])('a map that names %s is done with', async (_what, targets) => {
  map = () => targets;
  await world.create('Source', 'a');
  await driver.run();
  expect(passes).toEqual([]);
  expect(driver.errors).toEqual([]);
  expect(await world.sql`select from plumbline.watch_change`).toEqual([]);
});

test('a change waits for its watcher while that runs nowhere', async () => {
  await world.create('Source', 'a', { reader: 'one' });
  await world.driver({ kinds: [source] }).run();
  expect(mapped).toEqual([]);
  await world.driver().run();
  expect(passes).toEqual(['one']);
});
