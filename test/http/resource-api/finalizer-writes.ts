import { expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { createWidget, expectStatus, fieldsOf, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const A = 'example.dev/a';
const B = 'example.dev/b';

export function finalizerWrites(open: OpenTarget): void {
  const world = useWorld(open);

  function jsonPatch(path: string, operations: unknown): Promise<Answer> {
    return world.editor.send('PATCH', path, operations, { 'Content-Type': 'application/json-patch+json' });
  }

  async function finalizersOf(path: string): Promise<string[]> {
    return (await world.editor.get(path)).body.metadata.finalizers ?? [];
  }

  test('two that each add one to an empty list keep both, or one is told', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    const answers = await Promise.all(
      [A, B].map((name) => world.editor.patch(path, { metadata: { finalizers: [name] } })),
    );
    expect(answers.map((answer) => `${answer.status}`).toSorted()).toEqual(['200', '422']);
    const refused = answers.find((answer) => answer.status === 422);
    expect(refused && fieldsOf(refused)).toEqual(['metadata.resourceVersion']);
    expect((await finalizersOf(path)).length).toBe(1);
  });

  test('an object has 200 at most, and a policy for its deletion comes besides', async () => {
    const finalizers = Array.from({ length: 200 }, (_, n) => `example.dev/f${n}`);
    const { metadata } = await createWidget(world, { finalizers });
    const path = world.widget(metadata.name);
    const { resourceVersion } = metadata;
    const more = await world.editor.patch(path, { metadata: { resourceVersion, finalizers: [...finalizers, A] } });
    expectStatus(more, 422, 'Invalid', 'an object has at most 200 finalizers; got 201');
    const created = await world.editor.post(world.widgets, {
      metadata: { name: `${metadata.name}-2`, finalizers: [...finalizers, A] },
    });
    expectStatus(created, 422, 'Invalid', 'an object has at most 200 finalizers; got 201');
    const deleted = await world.editor.delete(`${path}?propagationPolicy=Foreground`);
    expect(deleted.status).toBe(202);
    // Without dependents the policy is soon done with.
    expect(deleted.body.metadata.finalizers).toHaveLength(201);
  });

  test('one that removes what it may not have seen is refused without a resourceVersion', async () => {
    const { metadata } = await createWidget(world, { finalizers: [A, B] });
    const path = world.widget(metadata.name);
    for (const finalizers of [null, [], [A], ['example.dev/c', A]]) {
      const answer = await world.editor.patch(path, { metadata: { finalizers } });
      expectStatus(answer, 422, 'Invalid', 'another writer may have put it on');
    }
    expectStatus(await jsonPatch(path, [{ op: 'remove', path: '/metadata/finalizers/0' }]), 422, 'Invalid');
    expect(await finalizersOf(path)).toEqual([A, B]);
  });

  test('one that says what it was made from is done', async () => {
    const { metadata } = await createWidget(world, { finalizers: [A, B] });
    const path = world.widget(metadata.name);
    const { resourceVersion } = metadata;
    const merged = await world.editor.patch(path, { metadata: { resourceVersion, finalizers: [A] } });
    expect(merged.status, merged.text).toBe(200);
    const tested = await jsonPatch(path, [
      { op: 'test', path: '/metadata/resourceVersion', value: merged.body.metadata.resourceVersion },
      { op: 'remove', path: '/metadata/finalizers' },
    ]);
    expect(tested.status, tested.text).toBe(200);
    expect(await finalizersOf(path)).toEqual([]);
  });

  test('a test of one finalizer allows to remove that one, and no other', async () => {
    const { metadata } = await createWidget(world, { finalizers: [A, B] });
    const path = world.widget(metadata.name);
    const all = await jsonPatch(path, [
      { op: 'test', path: '/metadata/finalizers/0', value: A },
      { op: 'remove', path: '/metadata/finalizers' },
    ]);
    expectStatus(all, 422, 'Invalid', B);
    const one = await jsonPatch(path, [
      { op: 'test', path: '/metadata/finalizers/0', value: A },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ]);
    expect(one.status, one.text).toBe(200);
    expect(await finalizersOf(path)).toEqual([B]);
  });

  test('on an object that is being deleted one can be taken off without more, two cannot', async () => {
    const { metadata } = await createWidget(world, { finalizers: [A, B] });
    const path = world.widget(metadata.name);
    await world.editor.delete(path);
    expectStatus(
      await world.editor.patch(path, { metadata: { finalizers: [] } }),
      422,
      'Invalid',
      'may have put it on',
    );
    expect((await world.editor.patch(path, { metadata: { finalizers: [B] } })).status).toBe(200);
    expect((await world.editor.patch(path, { metadata: { finalizers: null } })).status).toBe(200);
    expectStatus(await world.editor.get(path), 404, 'NotFound');
  });
}
