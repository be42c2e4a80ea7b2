import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function mergePatches(open: OpenTarget): void {
  const world = useWorld(open);

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
    expectStatus(await world.editor.patch(path, { metadata: { resourceVersion }, spec: { size: 3 } }), 409, 'Conflict');
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
}
