import { describe, expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import {
  changesOf,
  createTenant,
  EVERYONE,
  expectFailure,
  passMark,
  readyOf,
  storyWithoutMarks,
  useWatches,
} from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function selection(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  describe('kinds', () => {
    test.each(['Vault', 'example.dev/Vault', 'Vault,ManagedDatabase', 'Vault,Vault'])(
      'only those that are named come: %s',
      async (kinds) => {
        const all = await watches.open();
        const client = await watches.open({ kinds });
        await createWidget(world, { name: uniqueName('w') });
        const name = uniqueName('v');
        const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
        await world.editor.post(vaults, { metadata: { name } });
        expect((await client.next()).data.subject).toBe(`example.dev/Vault/${name}`);
        await all.waitFor(({ data }) => data.subject === `example.dev/Vault/${name}`);
        expect(changesOf(all)).toHaveLength(2);
      },
    );

    test.each(['Gadget', 'other.dev/Widget', 'widgets', 'Widget,', 'widget'])(
      'one that does not exist is refused, with those that do: %s',
      async (kinds) => {
        const { status, body } = await watches.refused({ kinds });
        expect(status).toBe(400);
        expectFailure(body, 400, 'BadRequest', /"kinds".*is not a kind; known are .*example\.dev\/Widget/);
      },
    );
  });

  describe('labelSelector', () => {
    test('an object that enters the selection is ADDED, one that leaves it DELETED, in between it is MODIFIED', async () => {
      const name = uniqueName('w');
      const label = (color: string | null): Promise<unknown> =>
        world.editor.patch(world.widget(name), { metadata: { labels: { color } } });
      const client = await watches.open({ labelSelector: 'color in (red,crimson)' });
      await createWidget(world, { name, labels: { color: 'blue' } });
      await label('red');
      await world.editor.patch(world.widget(name), { spec: { size: 1 } });
      await label('crimson');
      await label(null);
      await world.editor.patch(world.widget(name), { spec: { size: 2 } });
      await label('red');
      await world.editor.delete(world.widget(name));
      await passMark(world, client, { labels: { color: 'red' } });
      expect(storyWithoutMarks(client)).toEqual(
        ['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED', 'ADDED', 'DELETED'].map((type) => `${type} ${name}`),
      );
      const left = changesOf(client)[3];
      expect(left?.data).toMatchObject({ type: 'dev.plumbline.deleted', data: { spec: { size: 1 } } });
      expect(left?.data.data.metadata.labels).toBeUndefined();
    });

    test('on replay it is the same as live', async () => {
      const name = uniqueName('w');
      const query = { labelSelector: 'replayed' };
      const client = await watches.open(query);
      await createWidget(world, { name });
      for (const replayed of ['1', '2', null, '3']) {
        await world.editor.patch(world.widget(name), { metadata: { labels: { replayed } } });
      }
      await world.editor.delete(world.widget(name));
      const mark = await passMark(world, client, { labels: { replayed: 'mark' } });
      const replay = await watches.open({ ...query, from: readyOf(client).id ?? '' });
      await replay.waitFor(({ data }) => data.id === mark.data.id);
      const told = changesOf(client).map(({ event, data }) => ({ event, data }));
      expect(told).toHaveLength(6);
      expect(changesOf(replay).map(({ event, data }) => ({ event, data }))).toEqual(told);
    });

    test('an object that leaves by the write that deletes it is DELETED once; one that never was in it, not at all', async () => {
      const [inside, outside] = [uniqueName('in'), uniqueName('out')];
      const client = await watches.open({ labelSelector: 'leaving' });
      for (const [name, labels] of [
        [inside, { leaving: '1' }],
        [outside, {}],
      ] as const) {
        await createWidget(world, { name, labels, finalizers: ['example.dev/a'] });
        await world.editor.delete(world.widget(name));
        const { status } = await world.editor.patch(world.widget(name), {
          metadata: { finalizers: null, labels: { leaving: name === inside ? null : '1' } },
        });
        expect(status).toBe(200);
      }
      await passMark(world, client, { labels: { leaving: '1' } });
      expect(storyWithoutMarks(client)).toEqual([`ADDED ${inside}`, `MODIFIED ${inside}`, `DELETED ${inside}`]);
    });

    test('with kinds, both must hold', async () => {
      const client = await watches.open({ kinds: 'Widget', labelSelector: 'both=yes' });
      const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
      await world.editor.post(vaults, { metadata: { name: uniqueName('v'), labels: { both: 'yes' } } });
      await createWidget(world, { name: uniqueName('w'), labels: { both: 'no' } });
      const mark = await passMark(world, client, { labels: { both: 'yes' } });
      expect(changesOf(client).map(({ data }) => data.id)).toEqual([mark.data.id]);
    });

    test('a cursor does not depend on the selection: it moves past what the selection leaves out', async () => {
      const client = await watches.open({ labelSelector: 'wanted' });
      const { metadata: unwanted } = await createWidget(world);
      const { id: cursor = '' } = await passMark(world, client, { labels: { wanted: '1' } });
      const { metadata } = await createWidget(world);
      const everything = await watches.open({ from: cursor });
      const { data } = await everything.next();
      expect(data.uid).toBe(metadata.uid);
      expect(data.uid).not.toBe(unwanted.uid);
    });

    test.each(['a=b=c', 'in (', '!', 'a>1', '-x'])('a malformed one is refused: %s', async (labelSelector) => {
      const { status, body } = await watches.refused({ labelSelector });
      expect(status).toBe(400);
      expectFailure(body, 400, 'BadRequest');
    });
  });

  describe('tenants', () => {
    test('those that are named come, of those that the caller may see', async () => {
      const [first, second, third] = [await createTenant(world), await createTenant(world), await createTenant(world)];
      const client = await watches.open({ tenants: `${second.name},${first.name}` }, { grant: EVERYONE });
      expect(readyOf(client).data.tenants).toEqual([first.name, second.name].toSorted());
      for (const { widgets } of [third, first, second]) await world.admin.post(widgets, { metadata: { name: 'w' } });
      const events = [await client.next(), await client.next()];
      expect(new Set(events.map(({ data }) => data.tenant))).toEqual(new Set([first.name, second.name]));
    });

    test('in any order, and named twice, they have one cursor', async () => {
      const [{ name: a, widgets }, { name: b }] = [await createTenant(world), await createTenant(world)];
      const client = await watches.open({ tenants: `${a},${b}` }, { grant: EVERYONE });
      const { body } = await world.admin.post(widgets, { metadata: { name: 'w' } });
      const again = await watches.open(
        { tenants: `${b},${a},${b}`, from: readyOf(client).id ?? '' },
        { grant: EVERYONE },
      );
      expect((await again.next()).data.uid).toBe(body.metadata.uid);
    });

    test('a caller of some tenants that names none watches all of its own', async () => {
      const [a, b] = [await createTenant(world), await createTenant(world)];
      const client = await watches.open({}, { grant: { roles: ['viewer'], tenants: [a.name, b.name] } });
      for (const { widgets } of [a, b]) await world.admin.post(widgets, { metadata: { name: 'w' } });
      const tenants = [(await client.next()).data.tenant, (await client.next()).data.tenant];
      expect(new Set(tenants)).toEqual(new Set([a.name, b.name]));
    });

    test('one that is not there and one that the caller may not see answer alike, to the letter', async () => {
      const foreign = await createTenant(world);
      const missing = uniqueName('t');
      const answers = await Promise.all(
        [foreign.name, missing, 'system'].map(async (name) => {
          const { status, body } = await watches.refused({ tenants: `${world.tenant},${name}` });
          expectFailure(body, 404, 'NotFound');
          return `${status} ${JSON.stringify(body).replaceAll(name, 'T')}`;
        }),
      );
      expect(answers).toEqual(Array(3).fill(answers[0]));
      const known = await watches.refused({ tenants: missing }, { grant: EVERYONE });
      expect(JSON.stringify(known.body).replaceAll(missing, 'T')).toBe(answers[0]?.slice(4));
    });

    test.each(['Acme', 'a_b', '-a', '*', 'a,', ',', ' a', 'a'.repeat(64), '../acme', 'a\u0000b'])(
      'a malformed one is refused: %j',
      async (tenants) => {
        const { status, body } = await watches.refused({ tenants }, { grant: EVERYONE });
        expect(status).toBe(400);
        expectFailure(body, 400, 'BadRequest', '"tenants"');
      },
    );
  });
}
