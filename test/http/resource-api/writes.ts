import { describe, expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function writes(open: OpenTarget): void {
  const world = useWorld(open);

  describe('create', () => {
    test('answers 201 with the object as it is stored', async () => {
      const name = uniqueName('w');
      const answer = await world.editor.post(world.widgets, {
        apiVersion: 'example.dev/v1',
        kind: 'Widget',
        metadata: { name, namespace: world.tenant, labels: { app: 'x' }, annotations: { 'a.dev/b': 'c' } },
        spec: { size: 3 },
      });
      expect(answer.status).toBe(201);
      expect(answer.headers.get('Content-Type')).toBe('application/json');
      expect(answer.body).toEqual({
        apiVersion: 'example.dev/v1',
        kind: 'Widget',
        metadata: {
          name,
          namespace: world.tenant,
          uid: expect.stringMatching(UUID),
          resourceVersion: expect.stringMatching(/^[1-9][0-9]*$/),
          generation: 1,
          creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
          labels: { app: 'x' },
          annotations: { 'a.dev/b': 'c' },
        },
        spec: { size: 3 },
      });
      expect((await world.viewer.get(world.widget(name))).body).toEqual(answer.body);
    });

    test('takes no system field and no status from the client', async () => {
      const forged = {
        uid: '11111111-1111-4111-8111-111111111111',
        resourceVersion: '1',
        generation: 99,
        creationTimestamp: '2001-01-01T00:00:00Z',
        deletionTimestamp: '2001-01-01T00:00:00Z',
        managedFields: [],
      };
      const name = uniqueName('w');
      const { status, body } = await world.editor.post(world.widgets, {
        metadata: { name, ...forged },
        status: { ready: true },
      });
      expect(status).toBe(201);
      expect(body.metadata.uid).not.toBe(forged.uid);
      expect(body.metadata.generation).toBe(1);
      expect(body.metadata.creationTimestamp).not.toMatch(/^2001/);
      expect(body.metadata).not.toHaveProperty('deletionTimestamp');
      expect(body).not.toHaveProperty('status');
    });

    test('of a name that is taken answers 409 AlreadyExists', async () => {
      const { metadata } = await createWidget(world);
      const answer = await world.editor.post(world.widgets, { metadata: { name: metadata.name } });
      expectStatus(answer, 409, 'AlreadyExists', /^widgets\.example\.dev ".*" already exists$/);
      expect(answer.body.details).toEqual({ name: metadata.name, group: 'example.dev', kind: 'widgets' });
    });

    test('of one name by twenty at once lets exactly one win', async () => {
      const name = uniqueName('w');
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => world.editor.post(world.widgets, { metadata: { name }, spec: { n } })),
      );
      expect(answers.map((answer) => `${answer.status}`).toSorted()).toEqual(['201', ...Array<string>(19).fill('409')]);
    });

    test('needs a name', async () => {
      for (const metadata of [undefined, {}, { name: '' }, { generateName: 'w-' }]) {
        const answer = await world.editor.post(world.widgets, { metadata, spec: {} });
        expectStatus(answer, 422, 'Invalid');
        expect(fieldsOf(answer)).toEqual(['metadata.name']);
      }
    });
  });

  describe('replace', () => {
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
  });

  describe('merge patch', () => {
    test('merges, removes by null, and leaves the rest as it is', async () => {
      const object = await createWidget(
        world,
        { labels: { a: '1', b: '2' } },
        { size: 1, x: { p: 1, q: 2 }, list: [1, 2] },
      );
      const answer = await world.editor.patch(world.widget(object.metadata.name), {
        metadata: { labels: { a: null, c: '3' } },
        spec: { x: { p: null, r: 3 }, list: [3] },
        status: { ready: true },
      });
      expect(answer.status).toBe(200);
      expect(answer.body.spec).toEqual({ size: 1, x: { q: 2, r: 3 }, list: [3] });
      expect(answer.body.metadata.labels).toEqual({ b: '2', c: '3' });
      expect(answer.body).not.toHaveProperty('status');
    });

    test('that changes nothing keeps the resourceVersion', async () => {
      const object = await createWidget(world, { labels: { a: '1' } }, { size: 1 });
      const path = world.widget(object.metadata.name);
      expect((await world.editor.patch(path, {})).body).toEqual(object);
      expect(
        (await world.editor.patch(path, { metadata: { labels: { a: '1' } }, spec: { size: 1, y: null } })).body,
      ).toEqual(object);
    });

    test('by many at once loses nothing, without anybody retrying', async () => {
      const object = await createWidget(world, {}, { size: 1 });
      const path = world.widget(object.metadata.name);
      const writers = Array.from({ length: 12 }, (_, n) => n);
      const answers = await Promise.all(writers.map((n) => world.editor.patch(path, { spec: { [`w${n}`]: n } })));
      expect(answers.map((answer) => answer.status)).toEqual(writers.map(() => 200));
      const { body } = await world.editor.get(path);
      expect(body.spec).toEqual({ size: 1, ...Object.fromEntries(writers.map((n) => [`w${n}`, n])) });
      expect(body.metadata.generation).toBe(13);
    });

    test('with a stale resourceVersion or another uid answers 409', async () => {
      const object = await createWidget(world);
      const path = world.widget(object.metadata.name);
      const { resourceVersion } = object.metadata;
      expect((await world.editor.patch(path, { metadata: { resourceVersion }, spec: { size: 2 } })).status).toBe(200);
      expectStatus(
        await world.editor.patch(path, { metadata: { resourceVersion }, spec: { size: 3 } }),
        409,
        'Conflict',
      );
      const uid = '11111111-1111-4111-8111-111111111111';
      expectStatus(await world.editor.patch(path, { metadata: { uid }, spec: { size: 3 } }), 409, 'Conflict');
      expect((await world.editor.get(path)).body.spec.size).toBe(2);
    });

    test('of an absent object answers 404; one that renames or breaks the schema is refused', async () => {
      const { metadata } = await createWidget(world);
      const path = world.widget(metadata.name);
      expectStatus(await world.editor.patch(world.widget(uniqueName('w')), { spec: {} }), 404, 'NotFound');
      expectStatus(await world.editor.patch(path, { metadata: { name: 'other' } }), 400, 'BadRequest');
      const invalid = await world.editor.patch(path, { spec: { size: -1 }, metadata: { labels: { a: 'not ok' } } });
      expectStatus(invalid, 422, 'Invalid');
      expect(fieldsOf(invalid)).toEqual(['metadata.labels.a']);
      expect(fieldsOf(await world.editor.patch(path, { spec: { size: -1 } }))).toEqual(['spec.size']);
      expectStatus(
        await world.editor.patch(path, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
        422,
        'Invalid',
      );
    });
  });
}
