import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function dryRuns(open: OpenTarget): void {
  const world = useWorld(open);

  test('of a creation answers the object that would be, and makes none', async () => {
    const name = uniqueName('w');
    const answer = await world.editor.post(`${world.widgets}?dryRun=All`, { metadata: { name }, spec: { size: 3 } });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ metadata: { name, generation: 1 }, spec: { size: 3 } });
    expect(answer.body.metadata).not.toHaveProperty('resourceVersion');
    expectStatus(await world.editor.get(world.widget(name)), 404, 'NotFound');
    const generated = await world.editor.post(`${world.widgets}?dryRun=All`, { metadata: { generateName: 'w-' } });
    expectStatus(await world.editor.get(world.widget(generated.body.metadata.name)), 404, 'NotFound');
  });

  test('of a change answers the object that would be, and leaves the one that is', async () => {
    const object = await createWidget(world, { labels: { a: '1' } }, { size: 1 });
    const path = world.widget(object.metadata.name);
    const put = await world.editor.put(`${path}?dryRun=All`, { ...object, spec: { size: 2 } });
    expect(put.status, put.text).toBe(200);
    expect(put.body).toEqual({ ...object, metadata: { ...object.metadata, generation: 2 }, spec: { size: 2 } });
    const patch = await world.editor.patch(`${path}?dryRun=All`, { metadata: { labels: { a: '2' } } });
    expect(patch.body).toEqual({ ...object, metadata: { ...object.metadata, labels: { a: '2' } } });
    const status = await world.controller.patch(`${path}/status?dryRun=All`, { status: { ready: true } });
    expect(status.body).toEqual({ ...object, status: { ready: true } });
    const replaced = await world.controller.put(`${path}/status?dryRun=All`, { ...object, status: { ready: true } });
    expect(replaced.body).toEqual(status.body);
    expect((await world.editor.patch(`${path}?dryRun=All`, {})).body).toEqual(object);
    expect((await world.editor.get(path)).body).toEqual(object);
  });

  test('of a deletion answers as the deletion would, and deletes nothing', async () => {
    const free = await createWidget(world);
    const held = await createWidget(world, { finalizers: ['example.dev/a'] });
    const [freePath, heldPath] = [world.widget(free.metadata.name), world.widget(held.metadata.name)];
    const gone = await world.editor.delete(`${freePath}?dryRun=All`);
    expect([gone.status, gone.body]).toEqual([200, free]);
    const marked = await world.editor.delete(heldPath, { dryRun: ['All'] });
    expect(marked.status, marked.text).toBe(202);
    expect(marked.body.metadata).toMatchObject({ deletionTimestamp: expect.any(String), generation: 2 });
    expect((await world.editor.get(freePath)).body).toEqual(free);
    expect((await world.editor.get(heldPath)).body).toEqual(held);
  });

  test('of the removal of the last finalizer leaves the object and its finalizer', async () => {
    const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
    const path = world.widget(metadata.name);
    const { body } = await world.editor.delete(path);
    const answer = await world.editor.patch(`${path}?dryRun=All`, { metadata: { finalizers: [] } });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.metadata).not.toHaveProperty('finalizers');
    expect((await world.editor.get(path)).body).toEqual(body);
  });

  test('is refused for whatever the write would be refused for', async () => {
    const object = await createWidget(world, { finalizers: ['example.dev/a'] }, { size: 1 });
    const path = world.widget(object.metadata.name);
    const dry = `${path}?dryRun=All`;
    await world.editor.patch(path, { spec: { size: 2 } });
    expectStatus(await world.editor.put(dry, { ...object, spec: { size: 3 } }), 409, 'Conflict');
    expectStatus(await world.editor.post(`${world.widgets}?dryRun=All`, object), 409, 'AlreadyExists');
    expect(fieldsOf(await world.editor.patch(dry, { spec: { size: -1 } }))).toEqual(['spec.size']);
    expectStatus(await world.editor.delete(dry, { preconditions: { resourceVersion: '1' } }), 409, 'Conflict');
    expectStatus(await world.viewer.delete(dry), 403, 'Forbidden');
    expectStatus(await world.editor.patch(`${world.widget(uniqueName('w'))}?dryRun=All`, {}), 404, 'NotFound');
    await world.editor.delete(path);
    expectStatus(await world.editor.patch(dry, { spec: { size: 3 } }), 409, 'Conflict', 'being deleted');
    const added = await world.editor.patch(dry, { metadata: { finalizers: ['example.dev/a', 'example.dev/b'] } });
    expectStatus(added, 422, 'Invalid', 'no new finalizers');
  });

  test('of a tenant makes and ends none', async () => {
    const name = uniqueName('t');
    const made = await world.admin.post(`${TENANTS}?dryRun=All`, { metadata: { name } });
    expect(made.status, made.text).toBe(201);
    expectStatus(await world.admin.get(`${TENANTS}/${name}`), 404, 'NotFound');
    const marked = await world.admin.delete(`${TENANTS}/${world.tenant}?dryRun=All`);
    expect(marked.status, marked.text).toBe(202);
    expect((await createWidget(world)).metadata.namespace).toBe(world.tenant);
    expectStatus(await world.admin.delete(`${TENANTS}/shared?dryRun=All`), 403, 'Forbidden');
  });

  test('of a kind that there is none of is 400, and nothing is written', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    const name = uniqueName('w');
    for (const value of ['Some', 'all', 'true', 'All&dryRun=Some']) {
      const query = `?dryRun=${value}`;
      expectStatus(await world.editor.post(world.widgets + query, { metadata: { name } }), 400, 'BadRequest', 'dryRun');
      expectStatus(await world.editor.patch(path + query, { spec: { size: 9 } }), 400, 'BadRequest', 'dryRun');
      expectStatus(await world.editor.delete(path + query), 400, 'BadRequest', 'dryRun');
    }
    for (const dryRun of [['Some'], 'All', [1], true]) {
      expectStatus(await world.editor.delete(path, { dryRun }), 400, 'BadRequest', 'dryRun');
    }
    expect((await world.editor.get(path)).body.spec).toEqual({});
    expectStatus(await world.editor.get(world.widget(name)), 404, 'NotFound');
  });

  test('by many at once are all answered, or told when to come again', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = `${world.widget(object.metadata.name)}?dryRun=All`;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, size) => world.editor.patch(path, { spec: { size } })),
    );
    for (const answer of answers) {
      if (answer.status === 200) continue;
      expectStatus(answer, 429, 'TooManyRequests');
      expect(answer.headers.get('Retry-After')).toBe('1');
    }
    expect((await world.editor.get(world.widget(object.metadata.name))).body).toEqual(object);
  });
}
