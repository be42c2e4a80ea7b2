import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function replacement(open: OpenTarget): void {
  const world = useWorld(open);

  test('that changes nothing writes nothing, whatever the order of keys', async () => {
    const object = await createWidget(world, { labels: { a: '1', b: '2' } }, { x: { p: 1, q: [1, 2] }, size: 1 });
    const reordered = {
      spec: { size: 1, x: { q: [1, 2], p: 1 } },
      metadata: { ...object.metadata, labels: { b: '2', a: '1' } },
    };
    const answer = await world.editor.put(world.widget(object.metadata.name), reordered);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(object);
  });

  test('that changes the order of a list is a change', async () => {
    const object = await createWidget(world, {}, { list: [1, 2] });
    const answer = await world.editor.put(world.widget(object.metadata.name), { ...object, spec: { list: [2, 1] } });
    expect(answer.body.metadata.generation).toBe(2);
    expect(BigInt(answer.body.metadata.resourceVersion)).toBeGreaterThan(BigInt(object.metadata.resourceVersion));
  });

  test('of the spec raises the generation; of labels and finalizers alone it does not', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = world.widget(object.metadata.name);
    const spec = (await world.editor.put(path, { ...object, spec: { size: 2 } })).body;
    expect(spec.metadata.generation).toBe(2);
    const metadata = { ...spec.metadata, labels: { a: 'b' }, finalizers: ['example.dev/hold'] };
    const labels = (await world.editor.put(path, { ...spec, metadata })).body;
    expect(labels.metadata).toMatchObject({ generation: 2, labels: { a: 'b' }, finalizers: ['example.dev/hold'] });
    expect(labels.metadata.resourceVersion).not.toBe(spec.metadata.resourceVersion);
    const removed = await world.editor.put(path, {
      metadata: { resourceVersion: labels.metadata.resourceVersion },
      spec: { size: 2 },
    });
    expect(removed.body.metadata).not.toHaveProperty('labels');
    expect(removed.body.metadata).not.toHaveProperty('finalizers');
  });

  test('ignores the status, and clients that send system fields back', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const metadata = { ...object.metadata, generation: 77, creationTimestamp: null, deletionTimestamp: null };
    const answer = await world.editor.put(world.widget(object.metadata.name), {
      ...object,
      metadata,
      spec: { size: 2 },
      status: { ready: true },
    });
    expect(answer.body).not.toHaveProperty('status');
    expect(answer.body.metadata).toMatchObject({
      generation: 2,
      uid: object.metadata.uid,
      creationTimestamp: object.metadata.creationTimestamp,
    });
  });

  test('from what is no longer current answers 409 Conflict, and one of two writers wins', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = world.widget(object.metadata.name);
    const answers = await Promise.all([2, 3].map((size) => world.editor.put(path, { ...object, spec: { size } })));
    expect(answers.map((answer) => `${answer.status}`).toSorted()).toEqual(['200', '409']);
    const loser = answers.find((answer) => answer.status === 409);
    const winner = answers.find((answer) => answer.status === 200);
    expect(loser?.body).toMatchObject({
      reason: 'Conflict',
      details: { name: object.metadata.name, kind: 'widgets' },
    });
    expect((await world.editor.get(path)).body).toEqual(winner?.body);
  });

  test('without a resourceVersion answers 422 and names it', async () => {
    const { metadata } = await createWidget(world);
    const answer = await world.editor.put(world.widget(metadata.name), {
      metadata: { name: metadata.name },
      spec: {},
    });
    expectStatus(answer, 422, 'Invalid', 'must be specified for an update');
    expect(fieldsOf(answer)).toEqual(['metadata.resourceVersion']);
  });

  test('of an absent object answers 404 and creates nothing', async () => {
    const name = uniqueName('w');
    const answer = await world.editor.put(world.widget(name), { metadata: { name, resourceVersion: '1' }, spec: {} });
    expectStatus(answer, 404, 'NotFound');
    expect(answer.body.details).toEqual({ name, group: 'example.dev', kind: 'widgets' });
    expect((await world.editor.get(world.widget(name))).status).toBe(404);
  });

  test('of an object with another uid answers 409', async () => {
    const object = await createWidget(world);
    const metadata = { ...object.metadata, uid: '11111111-1111-4111-8111-111111111111' };
    expectStatus(
      await world.editor.put(world.widget(object.metadata.name), { ...object, metadata }),
      409,
      'Conflict',
      'UID',
    );
  });

  test('cannot set a deletion time on a live object', async () => {
    const object = await createWidget(world);
    const metadata = { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    const answer = await world.editor.put(world.widget(object.metadata.name), { ...object, metadata });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['metadata.deletionTimestamp']);
  });
}
