import { describe, expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import {
  changesOf,
  expectFailure,
  passMark,
  readyOf,
  settle,
  storyOf,
  storyWithoutMarks,
  useWatches,
} from '#test/http/watch/world.ts';
import type { OpenDeployment } from '#test/http/target.ts';

const MARKS = 'event.name.startsWith("mark-")';

export function filters(open: OpenDeployment): void {
  const world = useWorld(async () => (await open()).targets.public);
  const watches = useWatches(world);

  test('only events that match are delivered: no others are made up when an object begins or ceases to match', async () => {
    const name = uniqueName('w');
    const client = await watches.open({
      filter: `${MARKS} || (has(event.data.spec.size) && event.data.spec.size > 3)`,
    });
    await createWidget(world, { name }, { size: 1 });
    for (const size of [5, 6, 2, 7]) await world.editor.patch(world.widget(name), { spec: { size } });
    await world.editor.delete(world.widget(name));
    await passMark(world, client);
    const changes = changesOf(client).slice(0, -1);
    expect(changes.map(({ event, data }) => [event, data.data.spec.size])).toEqual([
      ['MODIFIED', 5],
      ['MODIFIED', 6],
      ['MODIFIED', 7],
      ['DELETED', 7],
    ]);
  });

  test('sees what the client is sent', async () => {
    const all = await watches.open();
    const { metadata } = await createWidget(world, { labels: { 'team/name': 'shop' } }, { size: 3 });
    const { data } = await all.next();
    const attributes = Object.entries(data).filter(([name]) => name !== 'data');
    const conditions = attributes.map(([name, value]) => `event.${name} == ${JSON.stringify(value)}`);
    const filter = [
      ...conditions,
      `event.data.metadata.uid == "${metadata.uid}"`,
      'event.data.metadata.labels["team/name"] == "shop"',
      'event.data.spec.size == 3',
      'event.group + "/" + event.kind + "/" + event.name == event.subject',
    ].join(' && ');
    const client = await watches.open({ filter, from: readyOf(all).id ?? '' });
    expect((await client.next()).data).toEqual(data);
    expect(attributes.length).toBe(12);
  });

  test('all of kinds, labelSelector, types and filter must hold', async () => {
    const [hit, kind, label, type, size] = ['hit', 'kind', 'label', 'type', 'size'].map(uniqueName);
    const client = await watches.open({
      kinds: 'Widget',
      labelSelector: 'color=red',
      types: 'ADDED,DELETED',
      filter: 'has(event.data.spec.size) && event.data.spec.size > 3',
    });
    const all = await watches.open();
    const red = { color: 'red' };
    await world.editor.post(`/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`, {
      metadata: { name: kind, labels: red },
    });
    await createWidget(world, { name: label, labels: { color: 'blue' } }, { size: 5 });
    await createWidget(world, { name: size, labels: red }, { size: 1 });
    await createWidget(world, { name: type, labels: red }, { size: 1 });
    await world.editor.patch(world.widget(type ?? ''), { spec: { size: 5 } });
    await createWidget(world, { name: hit, labels: red }, { size: 4 });
    expect((await client.next()).data.data.metadata.name).toBe(hit);
    await passMark(world, all);
    expect(changesOf(all)).toHaveLength(7);
    expect(storyOf(client)).toEqual([`ADDED ${hit}`]);
  });

  test('types are those that the watcher sees: an object that enters the labels is ADDED, one that leaves them DELETED', async () => {
    const name = uniqueName('w');
    const label = (color: string): Promise<unknown> =>
      world.editor.patch(world.widget(name), { metadata: { labels: { color } } });
    const query = { labelSelector: 'color=red' };
    const entering = await watches.open({ ...query, types: 'ADDED' });
    const leaving = await watches.open({ ...query, types: 'DELETED' });
    const changing = await watches.open({ ...query, types: 'MODIFIED', filter: 'event.type.endsWith("modified")' });
    const filtered = await watches.open({ ...query, filter: 'event.type != "dev.plumbline.modified"' });
    await createWidget(world, { name, labels: { color: 'blue' } });
    await label('red');
    await world.editor.patch(world.widget(name), { spec: { size: 1 } });
    await label('blue');
    await passMark(world, entering, { labels: { color: 'red' } });
    expect(storyWithoutMarks(entering)).toEqual([`ADDED ${name}`]);
    expect((await leaving.next()).event).toBe('DELETED');
    expect((await changing.next()).event).toBe('MODIFIED');
    expect([(await filtered.next()).event, (await filtered.next()).event]).toEqual(['ADDED', 'DELETED']);
  });

  test('initial state and what follows it are filtered, and so is a replay', async () => {
    const [small, large] = [uniqueName('w'), uniqueName('w')];
    await createWidget(world, { name: small }, { size: 1 });
    await createWidget(world, { name: large }, { size: 900 });
    await settle(world);
    const filter = 'has(event.data.spec.size) && event.data.spec.size >= 900';
    const client = await watches.open({ initial: 'true', filter });
    await client.waitFor(({ data }) => data.reason === 'InitialEventsEnd');
    const later = await createWidget(world, {}, { size: 901 });
    await client.waitFor(({ data }) => data.uid === later.metadata.uid);
    expect(storyOf(client)).toEqual([`ADDED ${large}`, `ADDED ${later.metadata.name}`]);
    const replay = await watches.open({ from: 'earliest', filter });
    await replay.waitFor(({ data }) => data.uid === later.metadata.uid);
    expect(storyOf(replay)).toEqual(storyOf(client));
    const deletions = await watches.open({ initial: 'true', types: 'DELETED' });
    expect((await deletions.next()).data.reason).toBe('InitialEventsEnd');
  });

  test.each([
    [{ filter: 'event.data.spec.size >' }, 'the filter "event.data.spec.size >" is refused: Unexpected token: EOF'],
    [{ filter: 'event.nope == 1' }, 'an event has no attribute "nope"'],
    [{ filter: 'event.id' }, 'it gives string; a filter gives bool'],
    [{ filter: 'event.id.matches("(")' }, 'not a regular expression of RE2'],
    [{ filter: `event.id == "${'x'.repeat(4100)}"` }, 'allowed are 4096'],
    [{ filter: '' }, 'the query parameter "filter" is empty'],
    [{ types: 'ADDED,NOPE' }, '"types": "NOPE" is no type of event; known are ADDED, MODIFIED, DELETED'],
    [{ types: 'added' }, '"types": "added" is no type'],
    [{ types: 'BOOKMARK' }, '"types": "BOOKMARK" is no type'],
  ])('what cannot be a filter is refused before the stream: %j', async (query, words) => {
    const { status, body } = await watches.refused(query);
    expect(status).toBe(400);
    expectFailure(body, 400, 'BadRequest');
    expect(body.message).toContain(words);
  });

  test('a filter that is given twice is refused', async () => {
    const answer = await world.viewer.get('/watch/v1/events?filter=true&filter=false');
    expectFailure(answer.body, 400, 'BadRequest', '"filter" is given 2 times');
  });

  describe('a filter that cannot be evaluated over an event', () => {
    const FRAGILE = `${MARKS} || event.data.spec.size > 3`;

    test('ends its own stream with ERROR and the cursor to go on from, is counted, and disturbs nobody', async () => {
      const before = await filterErrors();
      const fragile = await watches.open({ filter: FRAGILE });
      const robust = await watches.open({ filter: `has(event.data.spec.size) && (${FRAGILE})` });
      const all = await watches.open();
      const good = await createWidget(world, {}, { size: 5 });
      expect((await fragile.next()).data.uid).toBe(good.metadata.uid);
      await createWidget(world, { name: 'sizeless' });
      const after = await createWidget(world, {}, { size: 6 });

      const { data, id } = await fragile.waitFor(({ event }) => event === 'ERROR');
      expectFailure(data, 400, 'BadRequest', /No such key: size; ask with has\(\) before, at character \d+/);
      expect(data.message).toContain(JSON.stringify(FRAGILE));
      expect(data.details.causes[0].field).toBe('filter');
      expect(id).toBe('');
      expect(await fragile.ended).toBeUndefined();
      expect(storyOf(fragile)).toEqual([`ADDED ${good.metadata.name}`]);

      const again = await watches.open({
        from: data.details.cursor,
        filter: `has(event.data.spec.size) && (${FRAGILE})`,
      });
      expect((await again.next()).data.uid).toBe(after.metadata.uid);
      await all.waitFor(({ data }) => data.uid === after.metadata.uid);
      await robust.waitFor(({ data }) => data.uid === after.metadata.uid);
      expect(storyOf(robust)).toHaveLength(2);
      expect(storyOf(all)).toHaveLength(3);
      expect(await filterErrors()).toBe(before + 1);
    });

    test('ends a replay and an initial state in the same way; of the latter nothing can be gone on from', async () => {
      await createWidget(world);
      await settle(world);
      const replay = await watches.open({ from: 'earliest', filter: FRAGILE });
      const failed = await replay.waitFor(({ event }) => event === 'ERROR');
      expectFailure(failed.data, 400, 'BadRequest');
      const again = await watches.open({ from: failed.data.details.cursor, filter: MARKS });
      await passMark(world, again);
      const initial = await watches.open({ initial: 'true', filter: FRAGILE });
      const { data } = await initial.waitFor(({ event }) => event === 'ERROR');
      expectFailure(data, 400, 'BadRequest', 'watch again with a filter that can be');
      expect(data.details.cursor).toBeUndefined();
    });

    test('because it takes too much work ends its stream too', async () => {
      const client = await watches.open({
        filter: `${MARKS} || event.data.spec.list.all(x, event.data.spec.list.all(y, x + y >= 0))`,
      });
      const other = await watches.open();
      await createWidget(world, {}, { list: Array.from({ length: 2000 }, (_, index) => index) });
      const { data } = await client.waitFor(({ event }) => event === 'ERROR');
      expectFailure(data, 400, 'BadRequest', 'it takes more work than is allowed for one event');
      await passMark(world, other);
    });
  });

  async function filterErrors(): Promise<number> {
    const text = await (await fetch(`${(await open()).opsUrl}/metrics`)).text();
    return Number(/^plumbline_event_filter_errors_total (\d+)$/m.exec(text)?.[1]);
  }
}
