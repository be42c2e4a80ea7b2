import { expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function jsonPatches(open: OpenTarget): void {
  const world = useWorld(open);

  function send(path: string, operations: unknown, role: 'editor' | 'controller' = 'editor'): Promise<Answer> {
    return world[role].send('PATCH', path, operations, { 'Content-Type': 'application/json-patch+json' });
  }

  test('changes what its operations name, and nothing else', async () => {
    const object = await createWidget(world, { labels: { a: '1' } }, { size: 1, list: [1, 2] });
    const answer = await send(world.widget(object.metadata.name), [
      { op: 'test', path: '/spec/size', value: 1 },
      { op: 'replace', path: '/spec/size', value: 2 },
      { op: 'add', path: '/spec/list/-', value: 3 },
      { op: 'add', path: '/metadata/labels/b', value: '2' },
      { op: 'add', path: '/metadata/annotations', value: { c: 'd' } },
      { op: 'add', path: '/status', value: { ready: true } },
    ]);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual({
      ...object,
      metadata: {
        ...object.metadata,
        resourceVersion: answer.body.metadata.resourceVersion,
        generation: 2,
        labels: { a: '1', b: '2' },
        annotations: { c: 'd' },
      },
      spec: { size: 2, list: [1, 2, 3] },
    });
  });

  test('that changes nothing keeps the resourceVersion', async () => {
    const object = await createWidget(world, { labels: { a: '1' } }, { size: 1 });
    const path = world.widget(object.metadata.name);
    for (const operations of [[], [{ op: 'replace', path: '/spec', value: { size: 1 } }]]) {
      expect((await send(path, operations)).body).toEqual(object);
    }
  });

  test('of system fields changes none of them', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const answer = await send(world.widget(object.metadata.name), [
      { op: 'replace', path: '/metadata/generation', value: 99 },
      { op: 'replace', path: '/metadata/creationTimestamp', value: '2001-01-01T00:00:00Z' },
      { op: 'add', path: '/metadata/managedFields', value: [] },
    ]);
    expect(answer.body).toEqual(object);
  });

  test('whose test fails is 422 and does nothing, not even what comes before it', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = world.widget(object.metadata.name);
    const answer = await send(path, [
      { op: 'replace', path: '/spec/size', value: 2 },
      { op: 'test', path: '/metadata/resourceVersion', value: '1' },
    ]);
    expectStatus(answer, 422, 'Invalid', 'operation 1 (test "/metadata/resourceVersion")');
    expect(fieldsOf(answer)).toEqual(['/metadata/resourceVersion']);
    expect((await world.editor.get(path)).body).toEqual(object);
  });

  test('that sets a stale resourceVersion or another uid is 409', async () => {
    const object = await createWidget(world);
    const path = world.widget(object.metadata.name);
    for (const [field, value] of [
      ['resourceVersion', '1'],
      ['uid', '11111111-1111-4111-8111-111111111111'],
    ]) {
      const answer = await send(path, [{ op: 'replace', path: `/metadata/${field}`, value }]);
      expectStatus(answer, 409, 'Conflict');
    }
  });

  test('by many at once loses nothing, without anybody retrying', async () => {
    const object = await createWidget(world, {}, { list: [] });
    const path = world.widget(object.metadata.name);
    const writers = Array.from({ length: 12 }, (_, n) => n);
    const answers = await Promise.all(writers.map((n) => send(path, [{ op: 'add', path: '/spec/list/-', value: n }])));
    expect(answers.map((answer) => answer.status)).toEqual(writers.map(() => 200));
    const { list } = (await world.editor.get(path)).body.spec;
    expect(list.toSorted((a: number, b: number) => a - b)).toEqual(writers);
  });

  test('of a status writes the status alone, and obeys its rules', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = `${world.widget(object.metadata.name)}/status`;
    const answer = await send(
      path,
      [
        { op: 'add', path: '/status', value: { observedGeneration: 1 } },
        { op: 'add', path: '/status/ready', value: true },
        { op: 'replace', path: '/spec/size', value: 9 },
      ],
      'controller',
    );
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ spec: { size: 1 }, status: { observedGeneration: 1, ready: true } });
    const above = await send(path, [{ op: 'replace', path: '/status/observedGeneration', value: 2 }], 'controller');
    expect(fieldsOf(above)).toEqual(['status.observedGeneration']);
    expectStatus(await send(path, []), 403, 'Forbidden');
  });

  test('neither tells nor loses a secret', async () => {
    const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
    const name = uniqueName('v');
    const spec = { password: 'long enough', users: [{ name: 'ann', token: 'secret' }] };
    expect((await world.editor.post(vaults, { metadata: { name }, spec })).status).toBe(201);
    const path = `${vaults}/${name}`;
    const guess = await send(path, [{ op: 'test', path: '/spec/password', value: 'long enough' }]);
    expectStatus(guess, 422, 'Invalid', 'there is nothing at the path');
    const copy = await send(path, [{ op: 'copy', from: '/spec/users/0/token', path: '/spec/users/0/name' }]);
    expectStatus(copy, 422, 'Invalid', 'there is nothing at the path');
    expect((await send(path, [{ op: 'replace', path: '/spec/tier', value: 'large' }])).status).toBe(200);
    if (world.target.audience === 'private') {
      const admin = await world.admin.get(`${path}/secrets`);
      expect(admin.body.spec).toEqual({ password: 'long enough', users: [{ token: 'secret' }] });
    }
  });

  test.for([
    ['no list', { op: 'add' }, 400],
    ['an unknown operation', [{ op: 'merge', path: '/spec', value: 1 }], 400],
    ['a path to a prototype', [{ op: 'add', path: '/spec/__proto__/x', value: 1 }], 400],
    ['an operation without a value', [{ op: 'add', path: '/spec/x' }], 400],
    ['a removal of what is not there', [{ op: 'remove', path: '/spec/x' }], 422],
    ['an object that is none', [{ op: 'replace', path: '', value: 1 }], 422],
    ['a spec that is none', [{ op: 'replace', path: '/spec', value: [] }], 422],
    ['a spec that the schema refuses', [{ op: 'add', path: '/spec/size', value: -1 }], 422],
    ['another name', [{ op: 'replace', path: '/metadata/name', value: 'other' }], 400],
    ['a deletion', [{ op: 'add', path: '/metadata/deletionTimestamp', value: '2026-01-01T00:00:00Z' }], 422],
    ['1001 operations', Array.from({ length: 1001 }, () => ({ op: 'test', path: '/kind', value: 'Widget' })), 413],
    [
      'copies that double',
      Array.from({ length: 40 }, (_, n) => ({ op: 'copy', from: '/spec', path: `/spec/c${n}` })),
      413,
    ],
  ] as const)('with %s is refused', async ([, operations, code]) => {
    const object = await createWidget(world, {}, { text: 'x'.repeat(100) });
    const path = world.widget(object.metadata.name);
    const answer = await send(path, operations);
    expectStatus(answer, code, { 400: 'BadRequest', 413: 'RequestEntityTooLarge', 422: 'Invalid' }[code]);
    expect((await world.editor.get(path)).body).toEqual(object);
  });
}
