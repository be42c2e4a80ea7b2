import { describe, expect, test } from 'vitest';

import { removeTenant, requestDeletion, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { changesOf, createTenant, EVERYONE, expectFailure, readyOf, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { isProgress } from '#test/support/sse-client.ts';

export function tenantLife(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  describe('a watch of named tenants', () => {
    test('ends when they are deleted: all their events, TenantGone for each, and the end', async () => {
      const [first, second] = [await createTenant(world), await createTenant(world)];
      const client = await watches.open({ tenants: `${first.name},${second.name}` }, { grant: EVERYONE });
      for (const { name, widgets } of [first, second]) {
        await world.admin.post(widgets, { metadata: { name: 'w' } });
        await world.admin.delete(`${widgets}/w`);
        await requestDeletion(world, name);
        const { data } = await client.waitFor(({ data: { reason } }) => reason === 'TenantGone');
        expect(data).toEqual({ reason: 'TenantGone', tenant: name });
        expect(changesOf(client).at(-1)).toMatchObject({ event: 'DELETED', data: { tenant: name } });
      }
      expect(await client.ended).toBeUndefined();
      expect(client.events.filter((event) => !isProgress(event))).toHaveLength(1 + 3 + 3);
    });

    test('that was away meanwhile is told so: 410, its stream is another one, whether the name lives again or not', async () => {
      const { name, widgets } = await createTenant(world);
      const query = { tenants: name };
      const client = await watches.open(query, { grant: EVERYONE });
      await world.admin.post(widgets, { metadata: { name: 'w' } });
      const { id: cursor = '' } = await client.next();
      await client.close();
      await world.admin.delete(`${widgets}/w`);
      await removeTenant(world, name);
      const gone = await watches.refused({ ...query, from: cursor }, { grant: EVERYONE });
      expectFailure(gone.body, 404, 'NotFound');

      await createTenant(world, name);
      await world.admin.post(widgets, { metadata: { name: 'w' } });
      const recreated = await watches.refused({ ...query, from: cursor }, { grant: EVERYONE });
      expect(recreated.status).toBe(410);
      expectFailure(recreated.body, 410, 'StreamRecreated', 'was deleted');
      const inStream = await watches.refusedInStream(query, { grant: EVERYONE, lastEventId: cursor });
      expectFailure(inStream.data, 410, 'StreamRecreated');
    });

    test('of the successor shows nothing of the one before it', async () => {
      const { name, widgets } = await createTenant(world);
      await world.admin.post(widgets, { metadata: { name: 'old' } });
      await world.admin.delete(`${widgets}/old`);
      await removeTenant(world, name);
      await createTenant(world, name);
      const client = await watches.open({ tenants: name, from: 'earliest' }, { grant: EVERYONE });
      await world.admin.post(widgets, { metadata: { name: 'new' } });
      const { event, data } = await client.next();
      expect([event, data.data.metadata.name, data.seq]).toEqual(['ADDED', 'new', '1']);
    });
  });

  describe('a watch of all tenants', () => {
    test('shows new tenants from their beginning, without reconnecting', async () => {
      const client = await watches.open({ kinds: 'Widget' }, { grant: EVERYONE });
      for (let round = 0; round < 10; round++) {
        const { name, widgets } = await createTenant(world);
        const { body } = await world.admin.post(widgets, { metadata: { name: 'first' } });
        const { data } = await client.waitFor(({ data: { uid } }) => uid === body.metadata.uid);
        expect([data.tenant, data.seq]).toEqual([name, '1']);
      }
    });

    test('is told of the end of one behind its last event, and goes on', async () => {
      const client = await watches.open({}, { grant: EVERYONE });
      const { name, widgets } = await createTenant(world);
      await world.admin.post(widgets, { metadata: { name: 'w' } });
      await world.admin.delete(`${widgets}/w`);
      await requestDeletion(world, name);
      await client.waitFor(({ event, data }) => event === 'BOOKMARK' && data.tenant === name);
      const own = client.events.filter(
        ({ data }) => data.tenant === name || data.subject === `plumbline.dev/Tenant/${name}`,
      );
      expect(own.filter(({ data }) => data.tenant === name).map(({ event }) => event)).toEqual([
        'ADDED',
        'DELETED',
        'BOOKMARK',
      ]);
      const next = await createTenant(world);
      await client.waitFor(({ data }) => data.subject === `plumbline.dev/Tenant/${next.name}`);
    });

    test('that was away meanwhile reads the end of a deleted one, for a while', async () => {
      const { name, widgets } = await createTenant(world);
      await world.admin.post(widgets, { metadata: { name: 'w' } });
      const { body } = await world.admin.get('/apis/example.dev/v1/widgets?limit=1');
      await world.admin.delete(`${widgets}/w`);
      await requestDeletion(world, name);
      const client = await watches.open({ from: body.metadata.cursor }, { grant: EVERYONE });
      await client.waitFor(({ data }) => data.reason === 'TenantGone' && data.tenant === name);
      const own = client.events.filter(({ data }) => data.tenant === name).map(({ event }) => event);
      expect(own).toEqual(['DELETED', 'BOOKMARK']);
    });

    test('resumes over deletions and births of tenants', async () => {
      const [old, lasting] = [await createTenant(world), await createTenant(world)];
      await world.admin.post(old.widgets, { metadata: { name: 'w' } });
      const list = await world.admin.get('/apis/example.dev/v1/widgets?limit=1');
      await world.admin.delete(`${old.widgets}/w`);
      await removeTenant(world, old.name);
      const born = await createTenant(world, old.name);
      await world.admin.post(born.widgets, { metadata: { name: 'reborn' } });
      await world.admin.post(lasting.widgets, { metadata: { name: 'mark' } });

      const client = await watches.open({ from: list.body.metadata.cursor }, { grant: EVERYONE });
      const missing = new Set([`TenantGone ${old.name}`, `reborn ${old.name}`, `mark ${lasting.name}`]);
      while (missing.size > 0) {
        const { event, data } = await client.next();
        if (event === 'BOOKMARK') missing.delete(`${data.reason} ${data.tenant}`);
        else missing.delete(`${data.data.metadata.name} ${data.tenant}`);
      }
      const story = client.events
        .filter(({ data }) => data.tenant === old.name)
        .map(({ event, data }) => (event === 'BOOKMARK' ? data.reason : `${event} ${data.data.metadata.name}`));
      // Of the first life nothing is left but that it is over. Two incarnations are two streams, each with its own order.
      expect(new Set(story)).toEqual(new Set(['TenantGone', 'ADDED reborn']));
      expect(story).toHaveLength(2);
    });
  });

  describe('a caller whose token names a tenant that is yet to come', () => {
    test('watches, and gets its events when it is there, and again when it was deleted and made anew', async () => {
      const name = uniqueName('t');
      const grant = { roles: ['viewer'], tenants: [world.tenant, name] } as const;
      const client = await watches.open({}, { grant });
      expect(readyOf(client).data.tenants).toEqual([world.tenant, 'shared'].toSorted());
      for (let life = 1; life <= 2; life++) {
        const { widgets } = await createTenant(world, name);
        const { body } = await world.admin.post(widgets, { metadata: { name: 'w' } });
        await client.waitFor(({ event, data }) => event === 'ADDED' && data.uid === body.metadata.uid);
        await world.admin.delete(`${widgets}/w`);
        await removeTenant(world, name);
        await client.waitFor(({ event, data }) => event === 'BOOKMARK' && data.tenant === name);
      }
    });

    test('and nothing else of its own has a stream that stays open', async () => {
      const name = uniqueName('t');
      const client = await watches.open({}, { grant: { roles: ['viewer'], tenants: [name] } });
      expect(readyOf(client).data.tenants).toEqual(['shared']);
      const { widgets } = await createTenant(world, name);
      const { body } = await world.admin.post(widgets, { metadata: { name: 'w' } });
      expect((await client.next()).data.uid).toBe(body.metadata.uid);
    });
  });
}
