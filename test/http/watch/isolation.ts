import { expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld, type World } from '#test/http/resource-api/world.ts';
import { changesOf, createTenant, EVERYONE, passMark, readyOf, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const WRITES = 50;

export function isolation(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  async function writeInBoth(other: string): Promise<void> {
    await Promise.all(
      Array.from({ length: WRITES }, async (_, index) => {
        await Promise.all([
          createWidget(world, { name: uniqueName('own') }),
          world.admin.post(other, { metadata: { name: `foreign-${index}`, labels: { shared: 'x' } } }),
        ]);
      }),
    );
  }

  function expectOnlyOwn(events: readonly { data: { tenant: string } }[], { tenant }: World): void {
    expect(events.length).toBeGreaterThan(WRITES);
    // What is shared, anybody may write and everybody sees.
    const tenants = new Set(events.map(({ data }) => data.tenant).filter((name) => name !== 'shared'));
    expect(tenants).toEqual(new Set([tenant]));
  }

  test('events of one tenant never reach a watcher of another: not live, on replay, or as initial state', async () => {
    const other = await createTenant(world);
    const live = await watches.open();
    await writeInBoth(other.widgets);
    const mark = await passMark(world, live);
    const replays = await Promise.all([
      watches.open({ from: 'earliest' }),
      watches.open({ from: readyOf(live).id ?? '' }),
      watches.open({}, { lastEventId: readyOf(live).id ?? '' }),
    ]);
    for (const client of replays) await client.waitFor(({ data }) => data.uid === mark.data.uid);
    // Its objects come in no order: the bookmark is behind all of them.
    const initial = await watches.open({ initial: 'true' });
    await initial.waitFor(({ event }) => event === 'BOOKMARK');
    for (const client of [live, ...replays, initial]) {
      expectOnlyOwn(changesOf(client), world);
      expect(JSON.stringify(client.events)).not.toContain('foreign');
      expect(JSON.stringify(client.events)).not.toContain(other.name);
    }
  });

  test('each of two tenants sees its own alone while one caller sees both', async () => {
    const other = await createTenant(world);
    const grant = { roles: ['viewer'], tenants: [other.name] } as const;
    const [mine, theirs] = [await watches.open(), await watches.open({}, { grant })];
    const both = await watches.open({ tenants: `${world.tenant},${other.name}` }, { grant: EVERYONE });
    await writeInBoth(other.widgets);
    const mark = await passMark(world, mine);
    const { body } = await world.admin.post(other.widgets, { metadata: { name: 'mark' } });
    await theirs.waitFor(({ data }) => data.uid === body.metadata.uid);
    await both.waitFor(({ data }) => data.uid === body.metadata.uid);
    expectOnlyOwn(changesOf(mine), world);
    expectOnlyOwn(changesOf(theirs), { ...world, tenant: other.name });
    for (const own of [changesOf(mine), changesOf(theirs)]) {
      const seen = changesOf(both).filter(({ data }) => data.tenant === own[0]?.data.tenant);
      expect(seen.map(({ data }) => data.id)).toEqual(own.map(({ data }) => data.id));
    }
    expect(changesOf(both).some(({ data }) => data.id === mark.data.id)).toBe(true);
  });

  test('cluster-scoped objects, Tenants among them, are seen by callers of all tenants alone', async () => {
    const client = await watches.open();
    const all = await watches.open({}, { grant: EVERYONE });
    const planet = uniqueName('p');
    await world.admin.post('/apis/example.dev/v1/planets', { metadata: { name: planet } });
    const { name } = await createTenant(world);
    const mark = await passMark(world, client);
    expect(changesOf(client).map(({ data }) => data.id)).toEqual([mark.data.id]);
    await all.waitFor(({ data }) => data.subject === `example.dev/Planet/${planet}`);
    const { data } = await all.waitFor((event) => event.data.subject === `plumbline.dev/Tenant/${name}`);
    expect([data.tenant, data.source, data.data.metadata.namespace]).toEqual([
      'system',
      '/plumbline/system',
      undefined,
    ]);
  });
}
