import { describe, expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function deletion(open: OpenTarget): void {
  const world = useWorld(open);

  describe('without finalizers', () => {
    test('answers 200 with the last state, then 404, and the name is free', async () => {
      const object = await createWidget(world, {}, { size: 4 });
      const path = world.widget(object.metadata.name);
      const answer = await world.editor.delete(path);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ kind: 'Widget', metadata: { uid: object.metadata.uid }, spec: { size: 4 } });
      expectStatus(await world.editor.get(path), 404, 'NotFound');
      expectStatus(await world.editor.delete(path), 404, 'NotFound');
      const successor = await createWidget(world, { name: object.metadata.name });
      expect(successor.metadata.uid).not.toBe(object.metadata.uid);
    });

    test('takes the bodies that Kubernetes clients send', async () => {
      for (const body of [
        undefined,
        {},
        { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background', gracePeriodSeconds: 0 },
      ]) {
        const { metadata } = await createWidget(world);
        expect((await world.editor.delete(world.widget(metadata.name), body)).status).toBe(200);
      }
      const { metadata } = await createWidget(world);
      const empty = await world.editor.send('DELETE', world.widget(metadata.name), undefined, {
        'Content-Type': 'application/json',
      });
      expect(empty.status).toBe(200);
    });
  });

  describe('with finalizers', () => {
    test('answers 202 and keeps the object readable and listed, with a deletion time and a new generation', async () => {
      const object = await createWidget(world, { finalizers: ['example.dev/a'] });
      const path = world.widget(object.metadata.name);
      const answer = await world.editor.delete(path);
      expect(answer.status).toBe(202);
      expect(answer.body.metadata).toMatchObject({
        deletionTimestamp: expect.stringMatching(/Z$/),
        deletionGracePeriodSeconds: 0,
        generation: 2,
        finalizers: ['example.dev/a'],
      });
      expect((await world.editor.get(path)).body).toEqual(answer.body);
      const { body } = await world.editor.get(`${world.widgets}?fieldSelector=metadata.name=${object.metadata.name}`);
      expect(body.items).toEqual([answer.body]);
    });

    test('a second time changes nothing', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
      const first = await world.editor.delete(world.widget(metadata.name));
      const second = await world.editor.delete(world.widget(metadata.name));
      expect(second.status).toBe(202);
      expect(second.body).toEqual(first.body);
    });

    test('ends when the last finalizer is taken off: that write answers 200, then 404', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a', 'example.dev/b'] });
      const path = world.widget(metadata.name);
      await world.editor.delete(path);
      const one = await world.editor.patch(path, { metadata: { finalizers: ['example.dev/b'] } });
      expect(one.body.metadata.finalizers).toEqual(['example.dev/b']);
      const last = await world.editor.put(path, { ...one.body, metadata: { ...one.body.metadata, finalizers: [] } });
      expect(last.status).toBe(200);
      expect(last.body.metadata.uid).toBe(metadata.uid);
      expectStatus(await world.editor.get(path), 404, 'NotFound');
    });

    test('lets finalizers be removed and reordered, never added', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a', 'example.dev/b'] });
      const path = world.widget(metadata.name);
      await world.editor.delete(path);
      const added = await world.editor.patch(path, { metadata: { finalizers: ['example.dev/a', 'example.dev/c'] } });
      expectStatus(added, 422, 'Invalid', 'no new finalizers');
      expect(fieldsOf(added)).toEqual(['metadata.finalizers']);
      const reordered = await world.editor.patch(path, {
        metadata: { finalizers: ['example.dev/b', 'example.dev/a'] },
      });
      expect(reordered.body.metadata.finalizers).toEqual(['example.dev/b', 'example.dev/a']);
    });

    test('refuses a new spec; labels, annotations and status can still be written', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] }, { size: 1 });
      const path = world.widget(metadata.name);
      await world.editor.delete(path);
      expectStatus(await world.editor.patch(path, { spec: { size: 2 } }), 409, 'Conflict', 'object is being deleted');
      const labelled = await world.editor.patch(path, {
        metadata: { labels: { a: 'b' }, annotations: { retry: '1' } },
      });
      expect(labelled.status).toBe(200);
      const reported = await world.controller.patch(`${path}/status`, { status: { step: 'closing' } });
      expect(reported.body.status).toEqual({ step: 'closing' });
    });

    test('cannot be taken back: what a client says of the deletion time does not count', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
      const path = world.widget(metadata.name);
      const { body } = await world.editor.delete(path);
      for (const deletionTimestamp of [null, '2001-01-01T00:00:00Z']) {
        const answer = await world.editor.put(path, { ...body, metadata: { ...body.metadata, deletionTimestamp } });
        expect(answer.status).toBe(200);
        expect(answer.body).toEqual(body);
      }
    });

    test('makes the name wait: a create answers 409 and says so', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
      const path = world.widget(metadata.name);
      await world.editor.delete(path);
      const again = { metadata: { name: metadata.name } };
      expectStatus(await world.editor.post(world.widgets, again), 409, 'AlreadyExists', /^object is being deleted: /);
      await world.editor.patch(path, { metadata: { finalizers: null } });
      const created = await world.editor.post(world.widgets, again);
      expect(created.status).toBe(201);
      expect(created.body.metadata.uid).not.toBe(metadata.uid);
    });

    test('and a finalizer put on at the same moment never end with both "gone" and "written"', async () => {
      const rounds = 60;
      for (let round = 0; round < rounds; round++) {
        const object = await createWidget(world);
        const path = world.widget(object.metadata.name);
        const withFinalizer = { ...object, metadata: { ...object.metadata, finalizers: ['example.dev/a'] } };
        const [deleted, written] = await Promise.all([
          world.editor.delete(path),
          world.editor.put(path, withFinalizer),
        ]);
        const isThere = (await world.editor.get(path)).status === 200;
        const outcome = `${deleted.status} ${written.status} ${isThere ? 'there' : 'gone'}`;
        // Deleted first: the write finds nothing, or an object that is not what it read. Written first: it waits.
        expect(['200 404 gone', '202 200 there']).toContain(outcome);
      }
    });
  });

  test('on conditions: another uid or a stale resourceVersion answers 409 and the object lives', async () => {
    const first = await createWidget(world);
    const { name } = first.metadata;
    const path = world.widget(name);
    await world.editor.delete(path);
    const second = await createWidget(world, { name });
    expectStatus(
      await world.editor.delete(path, { preconditions: { uid: first.metadata.uid } }),
      409,
      'Conflict',
      'recreated',
    );
    const stale = { preconditions: { resourceVersion: first.metadata.resourceVersion } };
    expectStatus(await world.editor.delete(path, stale), 409, 'Conflict');
    expectStatus(await world.editor.delete(path, { preconditions: { uuid: 'x' } }), 422, 'Invalid');
    expect((await world.editor.get(path)).body).toEqual(second);
    const { uid, resourceVersion } = second.metadata;
    expect((await world.editor.delete(path, { preconditions: { uid, resourceVersion } })).status).toBe(200);
  });
}
