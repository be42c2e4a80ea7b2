import { describe, expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { passMark, settle, storyWithoutMarks, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const LARGE_CHARACTERS = 900 * 1024;

export function events(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  test('an event is a CloudEvent whose data is the object as the API answers it', async () => {
    const client = await watches.open();
    const widget = await createWidget(world, { labels: { a: '1' }, annotations: { note: 'x' } }, { size: 3 });
    const { event, id, data } = await client.next();
    expect(event).toBe('ADDED');
    expect(id).toMatch(/^[\w-]{20,}$/);
    expect(data).toEqual({
      specversion: '1.0',
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
      source: `/plumbline/${world.tenant}`,
      type: 'dev.plumbline.added',
      subject: `example.dev/Widget/${widget.metadata.name}`,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      datacontenttype: 'application/json',
      tenant: world.tenant,
      uid: widget.metadata.uid,
      resourceversion: widget.metadata.resourceVersion,
      seq: expect.stringMatching(/^[1-9]\d*$/),
      txid: expect.stringMatching(/^\d+$/),
      data: widget,
    });
    expect(Math.abs(Date.parse(data.time) - Date.now())).toBeLessThan(60_000);
  });

  test('MODIFIED carries the new state, and a write that changes nothing makes no event', async () => {
    const { metadata } = await createWidget(world, {}, { size: 1 });
    await settle(world);
    const client = await watches.open();
    await world.editor.patch(world.widget(metadata.name), { spec: { size: 1 } });
    const { body } = await world.editor.patch(world.widget(metadata.name), { spec: { size: 2 } });
    const { event, data } = await client.next();
    expect([event, data.type, data.data]).toEqual(['MODIFIED', 'dev.plumbline.modified', body]);
  });

  test('DELETED carries the last state, with a resourceVersion that is higher than all before', async () => {
    const widget = await createWidget(world, { labels: { a: '1' } }, { size: 7 });
    await settle(world);
    const client = await watches.open();
    await world.editor.delete(world.widget(widget.metadata.name));
    const { event, data } = await client.next();
    expect([event, data.type]).toEqual(['DELETED', 'dev.plumbline.deleted']);
    expect(BigInt(data.resourceversion)).toBeGreaterThan(BigInt(widget.metadata.resourceVersion));
    expect(data.data).toEqual({
      ...widget,
      metadata: { ...widget.metadata, resourceVersion: data.resourceversion },
    });
  });

  test('a deletion that waits for finalizers is MODIFIED, and DELETED once the last is gone', async () => {
    const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
    await settle(world);
    const client = await watches.open();
    await world.editor.delete(world.widget(metadata.name));
    await world.editor.patch(world.widget(metadata.name), { metadata: { finalizers: null } });
    const [marked, gone] = [await client.next(), await client.next()];
    expect([marked.event, marked.data.data.metadata.deletionTimestamp]).toEqual([
      'MODIFIED',
      expect.stringMatching(/Z$/),
    ]);
    expect([gone.event, gone.data.data.metadata.uid]).toEqual(['DELETED', metadata.uid]);
  });

  test('the status that a controller writes is an event', async () => {
    const { metadata } = await createWidget(world);
    await settle(world);
    const client = await watches.open();
    const answer = await world.controller.patch(`${world.widget(metadata.name)}/status`, { status: { ready: true } });
    expect(answer.status, answer.text).toBe(200);
    expect((await client.next()).data.data).toEqual(answer.body);
  });

  test.each([
    ['many scripts', 'Grüße, 世界, 🚀👩‍👩‍👧, \u05D0\u0628, \u{10FFFF}'],
    ['line ends of every kind', 'a\nb\r\nc\rd\u2028e\u2029f\u0085g'],
    ['what looks like a frame', '\n\nevent: ERROR\nid: x\ndata: {}\n\n: comment\n\n'],
    ['quotes and control characters', '"\\"\u0001\u001f\u007f\uFEFF</script>'],
  ])('text passes unchanged: %s', async (_, text) => {
    const client = await watches.open();
    const widget = await createWidget(world, { annotations: { text } }, { text, [text.replaceAll('.', '')]: 1 });
    const { data } = await client.next();
    expect(data.data).toEqual(widget);
    expect(data.data.spec.text).toBe(text);
  });

  test('an object of 900 KB comes whole, live, on replay and as initial state', async () => {
    const { id = '' } = (await watches.open()).events[0] ?? {};
    const client = await watches.open();
    const text = 'x'.repeat(LARGE_CHARACTERS);
    const { metadata } = await createWidget(world, { name: uniqueName('large') }, { text });
    for (const watch of [client, await watches.open({ from: id }), await watches.open({ initial: 'true' })]) {
      const { data } = await watch.waitFor((event) => event.data.uid === metadata.uid);
      expect(data.data.spec.text === text).toBe(true);
    }
    await world.editor.delete(world.widget(metadata.name));
    const { event, data } = await client.next();
    expect([event, data.data.spec.text.length]).toEqual(['DELETED', LARGE_CHARACTERS]);
  });

  describe('secrets of a kind', () => {
    const SECRETS = ['s3cret-password', 's3cret-token', 's3cret-unseal', 's3cret-changed'];

    test('are in no event: not when made, changed, reported, deleted, replayed or listed first', async () => {
      const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
      const live = await watches.open();
      const name = uniqueName('v');
      const path = `${vaults}/${name}`;
      const users = [{ name: 'jane', admin: true, token: 's3cret-token' }];
      const created = await world.editor.post(vaults, { metadata: { name }, spec: { password: SECRETS[0], users } });
      expect(created.status, created.text).toBe(201);
      await world.controller.patch(`${path}/status`, { status: { phase: 'Open', unsealKey: 's3cret-unseal' } });
      await world.editor.patch(path, { spec: { tier: 'large', password: 's3cret-changed' } });
      const initial = await watches.open({ initial: 'true', kinds: 'Vault' });
      await initial.waitFor(({ event }) => event === 'BOOKMARK');
      await world.editor.delete(path);
      await world.controller.patch(path, { metadata: { finalizers: null } });
      const mark = await passMark(world, live);
      const replay = await watches.open({ from: 'earliest' });
      await replay.waitFor(({ data }) => data.id === mark.data.id);

      expect(storyWithoutMarks(live)).toEqual([
        `ADDED ${name}`,
        ...Array(3).fill(`MODIFIED ${name}`),
        `DELETED ${name}`,
      ]);
      expect(live.events[1]?.data.data.spec).toEqual({ tier: 'small', users: [{ name: 'jane', admin: true }] });
      for (const client of [live, initial, replay]) {
        const text = JSON.stringify(client.events);
        expect(text).toContain(name);
        for (const secret of SECRETS) expect(text).not.toContain(secret);
      }
    });

    test('that change alone are a change without a visible difference', async () => {
      const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
      const name = uniqueName('v');
      await world.editor.post(vaults, { metadata: { name }, spec: { password: 's3cret-password' } });
      // A list waits for what was written of its kind.
      expect((await world.editor.get(vaults)).headers.get('warning')).toBeNull();
      const client = await watches.open();
      await world.editor.patch(`${vaults}/${name}`, { spec: { password: 's3cret-changed' } });
      const { event, data } = await client.next();
      expect([event, data.data.metadata.generation, data.data.spec]).toEqual(['MODIFIED', 2, { tier: 'small' }]);
    });
  });
}
