import { afterAll, describe, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import { changesOf, createTenant, EVERYONE, passMark, readyOf, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { isProgress } from '#test/support/sse-client.ts';

const INTERVAL_MS = 15_000;
const PATIENCE_MS = INTERVAL_MS + 1_000;

export function bookmarks(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world, afterAll);

  describe.concurrent('each at its time', () => {
    test('every 15 s at the latest a bookmark tells how far the stream is, also when a filter matches nothing', async () => {
      const other = await createTenant(world);
      const begin = performance.now();
      const idle = await watches.open({ tenants: other.name }, { grant: EVERYONE });
      const filtered = await watches.open({ kinds: 'ManagedDatabase' });
      const all = await watches.open();
      const widget = await createWidget(world);
      const early = [widget.metadata.uid, (await passMark(world, all)).data.uid];

      const [quiet, moved, busy] = await Promise.all(
        [idle, filtered, all].map((client) => client.waitFor(({ event }) => event === 'BOOKMARK', PATIENCE_MS)),
      );
      expect(performance.now() - begin).toBeLessThan(PATIENCE_MS);
      for (const bookmark of [quiet, moved, busy]) expect(bookmark?.data).toEqual({ reason: 'Progress' });
      for (const [client, bookmark] of [
        [filtered, moved],
        [all, busy],
      ] as const) {
        expect(bookmark?.id).not.toBe(readyOf(client).id);
        // Behind the bookmark is nothing of what was before it.
        const again = await watches.open({}, { lastEventId: bookmark?.id ?? '' });
        await passMark(world, again);
        expect(changesOf(again).filter(({ data }) => early.includes(data.uid))).toEqual([]);
      }
      expect(idle.events.filter((event) => !isProgress(event))).toHaveLength(1);
      const { body } = await world.admin.post(other.widgets, { metadata: { name: 'w' } });
      const resumed = await watches.open({ tenants: other.name, from: quiet?.id ?? '' }, { grant: EVERYONE });
      expect((await resumed.next()).data.uid).toBe(body.metadata.uid);
    });

    test('a watch over more tenants than ride on events has its cursor on bookmarks, and resumes from them', async () => {
      const tenants = await Promise.all(Array.from({ length: 20 }, () => createTenant(world)));
      const query = { tenants: tenants.map(({ name }) => name).join(',') };
      const client = await watches.open(query, { grant: EVERYONE });
      const [first] = tenants;
      if (!first) throw new Error('no tenant');
      await world.admin.post(first.widgets, { metadata: { name: 'one' } });
      expect((await client.next()).id).toBeUndefined();
      const { id: cursor = '' } = await client.waitFor(({ event }) => event === 'BOOKMARK', PATIENCE_MS);
      await client.close();
      const { body } = await world.admin.post(first.widgets, { metadata: { name: 'two' } });
      const again = await watches.open(query, { grant: EVERYONE, lastEventId: cursor });
      expect((await again.next()).data.uid).toBe(body.metadata.uid);
    });
  });
}
