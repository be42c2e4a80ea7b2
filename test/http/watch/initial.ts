import { beforeAll, describe, expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { changesOf, createTenant, EVERYONE, passMark, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import type { SseClient } from '#test/support/sse-client.ts';

/** More than two pages of any sensible reader. */
const MANY = 600;

export function initial(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  /** The initial objects, up to the bookmark behind them. */
  async function initialOf(client: SseClient): Promise<readonly { metadata: { name: string } }[]> {
    const { data, id } = await client.waitFor(({ event }) => event === 'BOOKMARK');
    expect(data).toEqual({ reason: 'InitialEventsEnd' });
    expect(id).toMatch(/^[\w-]{20,}$/);
    const before = client.events.slice(
      1,
      client.events.findIndex(({ event }) => event === 'BOOKMARK'),
    );
    expect(before.every(({ event, id: own }) => event === 'ADDED' && own === undefined)).toBe(true);
    return before.map((event) => event.data.data);
  }

  test('an empty tenant has a bookmark at once, and then what comes', async () => {
    const { name, widgets } = await createTenant(world);
    const client = await watches.open({ initial: 'true', tenants: name }, { grant: EVERYONE });
    expect(await initialOf(client)).toEqual([]);
    const { body } = await world.admin.post(widgets, { metadata: { name: 'first' } });
    expect((await client.next()).data.data).toEqual(body);
  });

  describe('with objects', () => {
    let objects: readonly { metadata: { name: string; uid: string } }[];

    beforeAll(async () => {
      objects = await Promise.all(
        Array.from({ length: 6 }, (_, index) =>
          createWidget(world, { labels: { parity: index % 2 === 0 ? 'even' : 'odd' } }, { size: index }),
        ),
      );
      const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
      expect((await world.editor.post(vaults, { metadata: { name: 'vault' } })).status).toBe(201);
      expect((await world.editor.get(vaults)).headers.get('warning')).toBeNull();
    });

    function names(list: readonly { metadata: { name: string } }[]): string[] {
      return list.map(({ metadata }) => metadata.name).toSorted();
    }

    test('all are ADDED as the API answers them, then a bookmark, then live events', async () => {
      const client = await watches.open({ initial: 'true', kinds: 'Widget' });
      const byName = (a: { metadata: { name: string } }, b: { metadata: { name: string } }): number =>
        a.metadata.name < b.metadata.name ? -1 : 1;
      expect((await initialOf(client)).toSorted(byName)).toEqual(objects.toSorted(byName));
      const mark = await passMark(world, client);
      expect(changesOf(client).at(-1)?.data.id).toBe(mark.data.id);
      await world.editor.delete(world.widget(mark.data.data.metadata.name));
    });

    test('an initial event is a CloudEvent too, with an id that is the same each time', async () => {
      const [first, second] = await Promise.all(
        [1, 2].map(async () => {
          const client = await watches.open({ initial: 'true', labelSelector: 'parity=even' });
          await initialOf(client);
          return changesOf(client)
            .map(({ data }) => data)
            .toSorted((a, b) => (a.id < b.id ? -1 : 1));
        }),
      );
      expect(first).toEqual(second);
      expect(new Set(first?.map(({ id }) => id)).size).toBe(3);
      for (const event of first ?? []) {
        expect(event).toMatchObject({ specversion: '1.0', type: 'dev.plumbline.added', tenant: world.tenant });
        expect(event.resourceversion).toBe(event.data.metadata.resourceVersion);
      }
    });

    test('kinds and label selectors apply to the state and to what follows', async () => {
      const client = await watches.open({ initial: 'true', labelSelector: 'parity=odd' });
      expect(names(await initialOf(client))).toEqual(names(objects.filter((_, index) => index % 2 === 1)));
      await createWidget(world, { name: uniqueName('other'), labels: { parity: 'even' } });
      const mark = await passMark(world, client, { labels: { parity: 'odd' } });
      expect(changesOf(client)).toHaveLength(4);
      await world.editor.delete(world.widget(mark.data.data.metadata.name));

      const vaults = await watches.open({ initial: 'true', kinds: 'Vault' });
      expect(names(await initialOf(vaults))).toEqual(['vault']);
      const none = await watches.open({ initial: 'true', kinds: 'ManagedDatabase' });
      expect(await initialOf(none)).toEqual([]);
    });

    test('a reconnect behind the bookmark goes on there and repeats nothing', async () => {
      const client = await watches.open({ initial: 'true' });
      await initialOf(client);
      const { lastEventId } = client;
      await client.close();
      const widget = await createWidget(world);
      const again = await watches.open({ initial: 'true' }, { lastEventId });
      // What was done before this test may be published behind the bookmark.
      const { data } = await again.waitFor(({ data: { uid } }) => uid === widget.metadata.uid);
      expect(data.data).toEqual(widget);
      const repeated = changesOf(again).filter(({ data: { uid } }) =>
        objects.some(({ metadata }) => metadata.uid === uid),
      );
      expect(repeated).toEqual([]);
      await world.editor.delete(world.widget(widget.metadata.name));
    });

    test('"initial" and "from" exclude each other', async () => {
      const { status, body } = await watches.refused({ initial: 'true', from: 'now' });
      expect([status, body.reason]).toEqual([400, 'BadRequest']);
      expect(body.message).toContain('exclude each other');
    });
  });

  test(`while ${MANY} objects are written, the initial state and what follows make up exactly what is there`, async () => {
    const { name, widgets } = await createTenant(world);
    const numbers = Array.from({ length: MANY }).keys();
    const writing = Promise.all(
      Array.from({ length: 8 }, async () => {
        for (const number of numbers) {
          const object = `${widgets}/w${number}`;
          await world.admin.post(widgets, { metadata: { name: `w${number}` }, spec: { size: 0 } });
          if (number % 3 === 0) await world.admin.delete(object);
          else await world.admin.patch(object, { spec: { size: number } });
        }
      }),
    );
    const watching: Promise<SseClient>[] = [];
    for (let count = 0; count < 5; count++) {
      watching.push(watches.open({ initial: 'true', tenants: name }, { grant: EVERYONE }));
      await initialOf(await watching[count]!);
    }
    await writing;
    const { body: mark } = await world.admin.post(widgets, { metadata: { name: 'mark' } });
    const { items } = (await world.admin.get(`${widgets}?limit=1000`)).body;
    expect(items).toHaveLength(MANY - MANY / 3 + 1);
    for (const client of await Promise.all(watching)) {
      await client.waitFor(({ data }) => data.uid === mark.metadata.uid);
      const state = new Map<string, unknown>();
      for (const { event, data } of changesOf(client)) {
        if (event === 'DELETED') state.delete(data.data.metadata.name);
        else state.set(data.data.metadata.name, data.data);
      }
      const byName = [...state].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
      expect(byName).toEqual(items);
    }
  });
}
