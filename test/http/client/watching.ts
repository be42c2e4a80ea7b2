import { expect, test } from 'vitest';
import { BadRequest, NotFound, watch } from 'plumbline/client';
import { wayTo } from '#test/http/client/cutting.ts';
import { expectOnce, isOf, storyOf, useTaking } from '#test/http/client/world.ts';
import { createWidget, removeTenant, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function watching(open: OpenTarget): void {
  const world = useWorld(open);
  const taking = useTaking(world);

  test('gives changes in order, with the object, the CloudEvent and the cursor', async () => {
    const taken = await taking({ tenants: [world.tenant], from: 'earliest' });
    const name = uniqueName('w');
    const made = await createWidget(world, { name }, { size: 1 });
    await world.editor.patch(world.widget(name), { spec: { size: 2 } });
    const last = (await world.editor.delete(world.widget(name))).body;
    await taken.until((item) => item.type === 'DELETED');
    expect(storyOf(taken)).toEqual([`ADDED ${name}`, `MODIFIED ${name}`, `DELETED ${name}`]);
    const [added] = taken.changes;
    expect(added?.object).toEqual(made);
    expect(added?.event).toMatchObject({
      specversion: '1.0',
      tenant: world.tenant,
      uid: last.metadata.uid,
      data: made,
    });
    const resumed = await taking({ tenants: [world.tenant], from: added?.cursor ?? '' });
    await resumed.until((item) => item.type === 'DELETED');
    expect(storyOf(resumed)).toEqual([`MODIFIED ${name}`, `DELETED ${name}`]);
  });

  test('begins with now unless told otherwise, and takes what comes after its first connection', async () => {
    await createWidget(world);
    const taken = await taking({ tenants: [world.tenant], initial: false });
    const { metadata } = (
      await world.admin.post('/apis/example.dev/v1/namespaces/shared/widgets', {
        metadata: { name: uniqueName('other') },
      })
    ).body;
    const both = await taking();
    const uids = new Set<string>();
    await expect
      .poll(async () => {
        uids.add((await createWidget(world)).metadata.uid);
        return [taken, both].every(({ changes }) => changes.some(({ event }) => uids.has(event.uid)));
      })
      .toBe(true);
    expect(taken.changes.every(({ event }) => event.tenant === world.tenant)).toBe(true);
    expect(taken.changes.some(({ event }) => event.uid === metadata.uid)).toBe(false);
  });

  test('selects by tenants, kinds and labels', async () => {
    const taken = await taking({
      tenants: [world.tenant],
      kinds: ['example.dev/Widget'],
      labelSelector: 'team=shop',
      from: 'earliest',
    });
    await createWidget(world, { labels: { team: 'other' } });
    const { metadata } = await createWidget(world, { labels: { team: 'shop' } });
    await world.editor.patch(world.widget(metadata.name), { metadata: { labels: { team: 'other' } } });
    await taken.until((item) => item.type === 'DELETED');
    expect(storyOf(taken)).toEqual([`ADDED ${metadata.name}`, `DELETED ${metadata.name}`]);
  });

  test('shows the initial state between two bookmarks, and goes on', async () => {
    const before = await createWidget(world);
    await world.viewer.get(world.widgets);
    const taken = await taking({ tenants: [world.tenant], initial: true });
    await taken.until((item) => item.type === 'BOOKMARK' && item.reason === 'InitialEventsEnd');
    expect(taken.items[0]).toEqual({ type: 'BOOKMARK', reason: 'InitialEventsBegin', cursor: undefined });
    expect(taken.changes.some(({ event }) => event.uid === before.metadata.uid)).toBe(true);
    expect(taken.changes.every(({ type, cursor }) => type === 'ADDED' && cursor === undefined)).toBe(true);
    const after = await createWidget(world);
    const change = await taken.until(isOf(after));
    expect(change.cursor).toBeTypeOf('string');
  });

  test('without bookmarks gives changes only, typed by their spec', async () => {
    const object = await createWidget(world, {}, { size: 7 });
    await world.viewer.get(world.widgets);
    const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
    const changes = watch<{ size: number }>({
      url: world.target.baseUrl,
      token,
      tenants: [world.tenant],
      initial: true,
    });
    for await (const { type, object: seen } of changes) {
      expect(type).toBe('ADDED');
      if (seen.metadata.uid !== object.metadata.uid) continue;
      expect(seen.spec.size + 1).toBe(8);
      break;
    }
    expect(await changes.next()).toEqual({ done: true, value: undefined });
  });

  test('ends without an error by its signal, also while it waits', async () => {
    const aborter = new AbortController();
    const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
    const options = { url: world.target.baseUrl, token, tenants: [world.tenant], signal: aborter.signal };
    const waiting = watch(options).next();
    aborter.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await watch(options).next()).toEqual({ done: true, value: undefined });
  });

  test('ends by return, also while it waits', async () => {
    const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
    const changes = watch({ url: world.target.baseUrl, token, tenants: [world.tenant] });
    const waiting = changes.next();
    await changes.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });

  test('ends without an error once all of its tenants are gone', async () => {
    const { name, widgets } = await createTenant(world);
    const taken = await taking({ tenants: [name], grant: EVERYONE, from: 'earliest' });
    await world.admin.post(widgets, { metadata: { name: 'last' } });
    await taken.until((item) => item.type === 'ADDED');
    await world.admin.delete(`${widgets}/last`);
    await removeTenant(world, name);
    expect(await taken.ended).toBeUndefined();
    expect(storyOf(taken)).toEqual(['ADDED last', 'DELETED last']);
    expect(taken.items.at(-1)).toMatchObject({ type: 'BOOKMARK', reason: 'TenantGone', tenant: name });
  });

  test.each([
    ['a cursor that is none', { from: 'nonsense' }, BadRequest, 'cursor is malformed'],
    ['a selector that is none', { labelSelector: '===' }, BadRequest, 'labelSelector'],
    ['a kind that is not served', { kinds: ['Nothing'] }, BadRequest, 'is not a kind'],
    ['a cursor beside the initial state', { from: 'earliest', initial: true }, BadRequest, 'exclude each other'],
    ['a tenant that nobody sees', { tenants: ['strangers'] }, NotFound, 'not found'],
  ])('ends with the error of the server for %s', async (_, options, ErrorClass, words) => {
    const taken = await taking({ tenants: [world.tenant], ...options });
    const error = await taken.ended;
    expect(error).toBeInstanceOf(ErrorClass);
    expect(error).toMatchObject({ message: expect.stringContaining(words), status: { kind: 'Status' } });
    expect(taken.retries).toEqual([]);
  });

  test('over more tenants than cursors fit on events repeats nothing behind a cut', async () => {
    const tenants = await Promise.all(Array.from({ length: 17 }, () => createTenant(world)));
    const names = tenants.map(({ name }) => name);
    const { url, proxy } = await wayTo(world.target.baseUrl);
    try {
      const taken = await taking({ url, tenants: names, grant: EVERYONE, from: 'earliest' });
      for (let round = 0; round < 5; round += 1) {
        const objects = await Promise.all(
          tenants.map(
            async ({ widgets }) => (await world.admin.post(widgets, { metadata: { name: uniqueName('w') } })).body,
          ),
        );
        await Promise.all(objects.map((object) => taken.until(isOf(object))));
        expect(taken.changes.at(-1)?.cursor).toBeUndefined();
        proxy.cut();
        await taken.untilRetries(round + 1);
      }
      const { body } = await world.admin.post(tenants[0]?.widgets ?? '', { metadata: { name: uniqueName('w') } });
      await taken.until(isOf(body));
      expectOnce(taken);
      expect(taken.changes).toHaveLength(5 * 17 + 1);
    } finally {
      await proxy.stop();
    }
  });
}
