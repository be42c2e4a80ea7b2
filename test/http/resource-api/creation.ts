import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function creation(open: OpenTarget): void {
  const world = useWorld(open);

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
    for (const metadata of [undefined, {}, { name: '' }, { generateName: '' }]) {
      const answer = await world.editor.post(world.widgets, { metadata, spec: {} });
      expectStatus(answer, 422, 'Invalid');
      expect(fieldsOf(answer)).toEqual(['metadata.name']);
    }
  });

  test('of a generateName makes a name of the prefix and five random letters', async () => {
    const names = new Set<string>();
    for (let count = 0; count < 3; count++) {
      const answer = await world.editor.post(world.widgets, { metadata: { generateName: 'job.x-' } });
      expect(answer.status, answer.text).toBe(201);
      expect(answer.body.metadata.name).toMatch(/^job\.x-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      names.add(answer.body.metadata.name);
    }
    expect(names.size).toBe(3);
  });

  test('of a long generateName cuts the prefix, so that the name has 63 characters', async () => {
    const answer = await world.editor.post(world.widgets, { metadata: { generateName: 'x'.repeat(200) } });
    expect(answer.body.metadata.name).toMatch(/^x{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  test('takes the name where both are given, and refuses a prefix that no name can begin with', async () => {
    const name = uniqueName('w');
    const both = await world.editor.post(world.widgets, { metadata: { name, generateName: 'other-' } });
    expect(both.body.metadata.name).toBe(name);
    for (const generateName of ['-a', 'Upper', 'a..', 'a/b', ' ']) {
      const answer = await world.editor.post(world.widgets, { metadata: { generateName } });
      expectStatus(answer, 422, 'Invalid', 'DNS subdomain');
      expect(fieldsOf(answer)).toEqual(['metadata.generateName']);
    }
  });
}
