import { expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { changesOf, passMark, settle, storyWithoutMarks, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const RACES = 200;
const RACES_AT_ONCE = 4;

export function live(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  test('two watchers both get everything after their READY and nothing before, with the same ids', async () => {
    await createWidget(world, { name: uniqueName('before') });
    await settle(world);
    const first = await watches.open();
    const { metadata } = await createWidget(world, { name: 'between' });
    await settle(world);
    const second = await watches.open();
    await world.editor.patch(world.widget('between'), { spec: { size: 2 } });
    expect((await world.editor.delete(world.widget('between'))).status).toBe(200);
    const mark = await passMark(world, first);
    await second.waitFor(({ data }) => data.id === mark.data.id);

    expect(storyWithoutMarks(first)).toEqual(['ADDED between', 'MODIFIED between', 'DELETED between']);
    expect(storyWithoutMarks(second)).toEqual(['MODIFIED between', 'DELETED between']);
    const ids = changesOf(first).map(({ data }) => data.id);
    expect(changesOf(second).map(({ data }) => data.id)).toEqual(ids.slice(1));
    expect(new Set(changesOf(first).map(({ data }) => data.uid))).toEqual(new Set([metadata.uid, mark.data.uid]));
  });

  test(`a write right after READY is always delivered, ${RACES} times`, async () => {
    let races = 0;
    await Promise.all(Array.from({ length: RACES_AT_ONCE }, race));

    async function race(): Promise<void> {
      while (races++ < RACES) {
        const client = await watches.open();
        const { metadata } = await createWidget(world);
        const { event } = await client.waitFor(({ data }) => data.uid === metadata.uid);
        expect(event).toBe('ADDED');
        await client.close();
      }
    }
  });

  test('concurrent writes come in one order, the same for all, without a gap', async () => {
    const clients = await Promise.all([watches.open(), watches.open(), watches.open()]);
    const objects = await Promise.all(Array.from({ length: 20 }, () => createWidget(world)));
    await Promise.all(
      objects.map(async ({ metadata: { name } }) => {
        for (let size = 1; size <= 5; size++) await world.editor.patch(world.widget(name), { spec: { size } });
        await world.editor.delete(world.widget(name));
      }),
    );
    const [first] = clients;
    if (!first) throw new Error('no client');
    const mark = await passMark(world, first);
    for (const client of clients.slice(1)) await client.waitFor(({ data }) => data.id === mark.data.id);

    const [changes = [], ...others] = clients.map(changesOf);
    expect(changes).toHaveLength(20 * 7 + 1);
    const start = BigInt(changes[0]?.data.seq ?? 0);
    expect(changes.map(({ data }) => data.seq)).toEqual(changes.map((_, index) => String(start + BigInt(index))));
    for (const other of others) expect(other.map(({ data }) => data.id)).toEqual(changes.map(({ data }) => data.id));
    for (const { metadata } of objects) {
      const own = changes.filter(({ data }) => data.uid === metadata.uid);
      expect(own.map(({ event }) => event)).toEqual(['ADDED', ...Array(5).fill('MODIFIED'), 'DELETED']);
      const versions = own.map(({ data }) => BigInt(data.resourceversion));
      expect(versions).toEqual(versions.toSorted((a, b) => (a < b ? -1 : 1)));
    }
  });
}
