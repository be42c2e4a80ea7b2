import { beforeAll, describe, expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import {
  changesOf,
  createTenant,
  passMark,
  readyOf,
  settle,
  storyOf,
  useWatches,
  watchUrl,
} from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { openSse, type SseEvent } from '#test/support/sse-client.ts';

const HISTORY = 500;
const RESUMES_AT_ONCE = 8;
/** Behind each cursor, so many events are compared. */
const COMPARED = 3;

export function resume(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  describe(`behind a history of ${HISTORY} events`, () => {
    let history: readonly SseEvent[];

    beforeAll(async () => {
      const client = await openSse(watchUrl(world.target.baseUrl), {
        token: await world.target.token({ roles: ['viewer'], tenants: [world.tenant] }),
      });
      const names = Array.from({ length: 10 }, () => uniqueName('w'));
      await Promise.all(
        names.map(async (name) => {
          await createWidget(world, { name }, { size: 0 });
          for (let size = 1; size < HISTORY / 10; size++)
            await world.editor.patch(world.widget(name), { spec: { size } });
        }),
      );
      for (let count = 0; count < HISTORY; count++)
        await client.waitFor(({ event }) => event !== 'BOOKMARK' && event !== 'READY');
      history = changesOf(client);
      await client.close();
    });

    test('a watch from the earliest event delivers all of them, in order, and goes on live', async () => {
      const client = await watches.open({ from: 'earliest' });
      await client.waitFor(({ data }) => data.id === history.at(-1)?.data.id);
      expect(changesOf(client).map(({ data }) => data)).toEqual(history.map(({ data }) => data));
      await passMark(world, client);
      expect(changesOf(client)).toHaveLength(HISTORY + 1);
    });

    test('from the cursor of every single event, the next one is the one behind it', async () => {
      const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
      const indices = history.keys();
      await Promise.all(Array.from({ length: RESUMES_AT_ONCE }, resumeEach));

      async function resumeEach(): Promise<void> {
        for (const index of indices) {
          const expected = history.slice(index + 1, index + 1 + COMPARED).map(({ data }) => data.id);
          const client = await openSse(watchUrl(world.target.baseUrl, { from: history[index]?.id ?? '' }), { token });
          for (let count = 0; count < expected.length; count++)
            await client.waitFor(({ event }) => event === 'MODIFIED' || event === 'ADDED');
          expect(
            changesOf(client)
              .slice(0, expected.length)
              .map(({ data }) => data.id),
          ).toEqual(expected);
          await client.close();
        }
      }
    });

    test('with Last-Event-ID it is the same', async () => {
      const client = await watches.open({}, { lastEventId: history[HISTORY / 2]?.id ?? '' });
      await client.waitFor(({ data }) => data.id === history.at(-1)?.data.id);
      const missed = history.slice(HISTORY / 2 + 1).map(({ data }) => data.id);
      const seen = changesOf(client).map(({ data }) => data.id);
      expect(seen.slice(0, missed.length)).toEqual(missed);
    });
  });

  test('from=now delivers nothing that was', async () => {
    await createWidget(world);
    await settle(world);
    const client = await watches.open({ from: 'now' });
    const mark = await passMark(world, client);
    expect(storyOf(client)).toEqual([`ADDED ${mark.data.data.metadata.name}`]);
  });

  test('Last-Event-ID wins over "from" and "initial": a browser reconnects to the address it was given', async () => {
    const first = await watches.open();
    const { id: early = '' } = await passMark(world, first);
    const { id: late = '' } = await passMark(world, first);
    const last = await passMark(world, first);
    for (const query of [
      { from: early },
      { from: 'now' },
      { from: 'earliest' },
      { from: 'nonsense' },
      { initial: 'true' },
    ]) {
      const client = await watches.open(query, { lastEventId: late });
      expect(readyOf(client).data.mode).toBe('resume');
      expect((await client.next()).data.id).toBe(last.data.id);
    }
  });

  test('an empty Last-Event-ID is none: a browser sends it after its id was reset', async () => {
    const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
    const client = await openSse(watchUrl(world.target.baseUrl), { token, headers: { 'Last-Event-ID': '' } });
    expect((await client.next()).data.mode).toBe('live');
    await client.close();
  });

  test('a cursor is used as often as one likes', async () => {
    const first = await watches.open();
    const { id = '' } = readyOf(first);
    const mark = await passMark(world, first);
    for (const client of await Promise.all(Array.from({ length: 5 }, () => watches.open({ from: id })))) {
      expect((await client.next()).data.id).toBe(mark.data.id);
    }
  });

  test("a list's cursor is where a watch takes over, whichever kind and page it is of", async () => {
    const { name, widgets } = await createTenant(world);
    const grant = { roles: ['editor'], tenants: [name] } as const;
    for (const size of [1, 2, 3])
      await world.admin.post(widgets, { metadata: { name: uniqueName('w') }, spec: { size } });
    const { metadata } = (await world.admin.get(`${widgets}?limit=2`)).body;
    const { body: object } = await world.admin.post(widgets, { metadata: { name: 'after' } });
    const rest = (await world.admin.get(`${widgets}?limit=2&continue=${encodeURIComponent(metadata.continue)}`)).body;
    expect(rest.metadata.cursor).toBe(metadata.cursor);
    const client = await watches.open({ tenants: name, from: metadata.cursor }, { grant });
    expect((await client.next()).data.data).toEqual(object);
  });

  test('events of a transaction that was captured before and published later are not lost on the way', async () => {
    const client = await watches.open();
    const ids: string[] = [];
    let cursor = readyOf(client).id ?? '';
    const writes = Promise.all(Array.from({ length: 100 }, () => createWidget(world)));
    // Reconnects at every event, while they are being written.
    while (ids.length < 100) {
      const next = await watches.open({}, { lastEventId: cursor });
      const { id = '', data } = await next.waitFor(({ event }) => event === 'ADDED');
      ids.push(data.id);
      cursor = id;
      await next.close();
    }
    await writes;
    await passMark(world, client);
    expect(ids).toEqual(
      changesOf(client)
        .slice(0, 100)
        .map(({ data }) => data.id),
    );
  });
}
