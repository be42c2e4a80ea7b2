import { expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { createWidget, expectStatus, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function ifMatch(open: OpenTarget): void {
  const world = useWorld(open);

  test('stands for the resourceVersion of every write', async () => {
    const object = await createWidget(world, { finalizers: ['example.dev/a'] }, { size: 1 });
    const path = world.widget(object.metadata.name);
    let { resourceVersion } = object.metadata;
    const send = async (method: string, at: string, body: unknown, type?: string): Promise<Answer> => {
      const answer = await world.admin.send(method, at, body, {
        'If-Match': `"${resourceVersion}"`,
        ...(type && { 'Content-Type': type }),
      });
      expect(answer.status, answer.text).toBeLessThan(300);
      expectStatus(
        await world.admin.send(method, at, body, { 'If-Match': '"1"', ...(type && { 'Content-Type': type }) }),
        409,
        'Conflict',
      );
      ({ resourceVersion } = answer.body.metadata);
      return answer;
    };
    await send('PUT', path, { metadata: { finalizers: ['example.dev/a'] }, spec: { size: 2 } });
    await send('PATCH', path, { spec: { size: 3 } });
    await send('PATCH', path, [{ op: 'replace', path: '/spec/size', value: 4 }], 'application/json-patch+json');
    await send('PUT', `${path}/status`, { metadata: {}, status: { a: 1 } });
    await send('PATCH', `${path}/status`, { status: { a: 2 } });
    await send('PATCH', path, { metadata: { finalizers: null } });
    const { status } = await world.editor.send('DELETE', path, undefined, { 'If-Match': `"${resourceVersion}"` });
    expect(status).toBe(200);
  });

  test('that is no resourceVersion is 400; one that any object fulfils demands nothing', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    for (const tag of ['1', '"a"', 'W/"1"', '"1", "2"', '""', '"01"']) {
      const answer = await world.editor.send('PATCH', path, { spec: { size: 2 } }, { 'If-Match': tag });
      expectStatus(answer, 400, 'BadRequest', 'If-Match');
    }
    expect((await world.editor.send('PATCH', path, { spec: { size: 2 } }, { 'If-Match': '*' })).status).toBe(200);
  });

  test('that names no version does not stand for the one that a PUT needs, and the answer says so', async () => {
    const { metadata } = await createWidget(world);
    for (const path of [world.widget(metadata.name), `${world.widget(metadata.name)}/status`]) {
      const answer = await world.admin.send('PUT', path, { metadata: {}, spec: {}, status: {} }, { 'If-Match': '*' });
      expectStatus(answer, 422, 'Invalid', 'in If-Match, where "*" names no version');
    }
  });

  test('that contradicts the body is 409, and nothing is written', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = world.widget(object.metadata.name);
    const answer = await world.editor.send('PUT', path, { ...object, spec: { size: 2 } }, { 'If-Match': '"1"' });
    expectStatus(answer, 409, 'Conflict', 'If-Match');
    expect((await world.editor.get(path)).body).toEqual(object);
  });
}
