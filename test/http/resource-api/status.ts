import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { Answer } from '#test/http/client.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function status(open: OpenTarget): void {
  const world = useWorld(open);

  test('a status write changes the status and nothing else', async () => {
    const object = await createWidget(world, { labels: { a: '1' } }, { size: 1 });
    const path = world.widget(object.metadata.name);
    const answer = await world.controller.put(`${path}/status`, {
      ...object,
      metadata: { ...object.metadata, labels: { b: '2' }, finalizers: ['example.dev/x'] },
      spec: { size: 9 },
      status: { ready: true, observedGeneration: 1 },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...object,
      metadata: { ...object.metadata, resourceVersion: answer.body.metadata.resourceVersion },
      status: { ready: true, observedGeneration: 1 },
    });
    expect(BigInt(answer.body.metadata.resourceVersion)).toBeGreaterThan(BigInt(object.metadata.resourceVersion));
    expect((await world.viewer.get(path)).body).toEqual(answer.body);
    expect((await world.viewer.get(`${path}/status`)).body).toEqual(answer.body);
  });

  test('the same status again writes nothing', async () => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    const first = await world.controller.put(path, { ...object, status: { a: [1, 2], b: 1 } });
    const second = await world.controller.put(path, { ...first.body, status: { b: 1, a: [1, 2] } });
    expect(second.body).toEqual(first.body);
    expect((await world.controller.patch(path, { status: { b: 1 } })).body).toEqual(first.body);
  });

  test('a status write is conditional on what was read', async () => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    expect((await world.controller.put(path, { ...object, status: { n: 1 } })).status).toBe(200);
    expectStatus(await world.controller.put(path, { ...object, status: { n: 2 } }), 409, 'Conflict');
    const { resourceVersion } = object.metadata;
    expectStatus(
      await world.controller.patch(path, { metadata: { resourceVersion }, status: { n: 2 } }),
      409,
      'Conflict',
    );
    const without = await world.controller.put(path, { metadata: {}, status: { n: 2 } });
    expectStatus(without, 422, 'Invalid');
    expect(fieldsOf(without)).toEqual(['metadata.resourceVersion']);
    expect(fieldsOf(await world.controller.put(path, { metadata: object.metadata }))).toEqual(['status']);
    expectStatus(
      await world.controller.put(`${world.widget(uniqueName('w'))}/status`, {
        metadata: { resourceVersion: '1' },
        status: {},
      }),
      404,
      'NotFound',
    );
  });

  test('a status patch merges, and many at once lose nothing', async () => {
    const { metadata } = await createWidget(world);
    const path = `${world.widget(metadata.name)}/status`;
    const reporters = Array.from({ length: 8 }, (_, n) => n);
    const answers = await Promise.all(reporters.map((n) => world.controller.patch(path, { status: { [`r${n}`]: n } })));
    expect(answers.map((answer) => answer.status)).toEqual(reporters.map(() => 200));
    expect((await world.controller.patch(path, { status: { r0: null } })).body.status).toEqual(
      Object.fromEntries(reporters.slice(1).map((n) => [`r${n}`, n])),
    );
    expect((await world.controller.patch(path, { status: null })).body).not.toHaveProperty('status');
  });

  test('conditions are stored by type, and a report of nothing new writes nothing', async () => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    const [synced, ready] = ['Synced', 'Ready'].map((type) => ({
      type,
      status: 'True',
      reason: 'Done',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }));
    const first = await world.controller.put(path, { ...object, status: { conditions: [synced, ready] } });
    const [time] = timesOf(first);
    expect(first.body.status.conditions).toMatchObject([{ type: 'Ready' }, { type: 'Synced' }]);
    const later = [synced, ready].map((condition) => ({ ...condition, lastTransitionTime: '2026-02-02T00:00:00Z' }));
    expect((await world.controller.put(path, { ...first.body, status: { conditions: later } })).body).toEqual(
      first.body,
    );
    expect((await world.controller.patch(path, { status: { conditions: later } })).body).toEqual(first.body);
    const failed = { ...later[0], status: 'False' };
    const changed = await world.controller.patch(path, { status: { conditions: [failed, later[1]] } });
    expect(changed.body.status.conditions).toMatchObject([{ status: 'True' }, { status: 'False' }]);
    expect(timesOf(changed)[0]).toBe(time);
  });

  test('the time of a transition is the time of the write that makes it, whatever it says', async () => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    const ready = { type: 'Ready', status: 'True', reason: 'Done' };
    const startedAt = Date.parse(object.metadata.creationTimestamp);
    const made = await world.controller.put(path, { ...object, status: { conditions: [ready] } });
    expect(Date.parse(timesOf(made)[0] ?? '')).toBeGreaterThanOrEqual(startedAt);
    for (const [status, lastTransitionTime] of [
      ['False', '2999-01-01T00:00:00Z'],
      ['True', '1999-01-01T00:00:00Z'],
      ['Unknown', null],
    ] as const) {
      const answer = await world.controller.patch(path, {
        status: { conditions: [{ ...ready, status, lastTransitionTime }] },
      });
      expect(answer.status, answer.text).toBe(200);
      const time = Date.parse(timesOf(answer)[0] ?? '');
      expect(time).toBeGreaterThanOrEqual(startedAt);
      expect(time).toBeLessThan(Date.parse('2998-01-01T00:00:00Z'));
    }
  });

  test.for<[string, unknown, string]>([
    ['that are no list', 'x', 'status.conditions'],
    ['that are no objects', ['x'], 'status.conditions[0]'],
    ['without a type', [{ status: 'True' }], 'status.conditions[0].type'],
    ['without a status', [{ type: 'Ready' }], 'status.conditions[0].status'],
    ['with a status of its own', [{ type: 'Ready', status: 'Maybe' }], 'status.conditions[0].status'],
    [
      'with a time that is none',
      [{ type: 'Ready', status: 'True', lastTransitionTime: 'soon' }],
      'status.conditions[0].lastTransitionTime',
    ],
    ['with a type twice', ['True', 'False'].map((is) => ({ type: 'Ready', status: is })), 'status.conditions[1].type'],
  ])('conditions %s are 422', async ([, conditions, field]) => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    for (const answer of [
      await world.controller.patch(path, { status: { conditions } }),
      await world.controller.put(path, { ...object, status: { conditions } }),
    ]) {
      expectStatus(answer, 422, 'Invalid');
      expect(fieldsOf(answer)).toEqual([field]);
    }
    expect((await world.viewer.get(path)).body).toEqual(object);
  });

  test('observedGeneration never says more than there is, and never goes back', async () => {
    const object = await createWidget(world, {}, { size: 1 });
    const path = world.widget(object.metadata.name);
    await world.editor.patch(path, { spec: { size: 2 } });
    const above = await world.controller.patch(`${path}/status`, { status: { observedGeneration: 3 } });
    expectStatus(above, 422, 'Invalid', 'above metadata.generation');
    expect(fieldsOf(above)).toEqual(['status.observedGeneration']);
    expect((await world.controller.patch(`${path}/status`, { status: { observedGeneration: 2 } })).status).toBe(200);
    expectStatus(
      await world.controller.patch(`${path}/status`, { status: { observedGeneration: 1 } }),
      409,
      'Conflict',
      'cannot go back',
    );
  });

  test('a status obeys its kind, and keeps what other controllers report', async () => {
    const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
    const { body } = await world.editor.post(vaults, { metadata: { name: uniqueName('v') } });
    const path = `${vaults}/${body.metadata.name}/status`;
    const invalid = await world.controller.patch(path, { status: { phase: 'Ajar' } });
    expectStatus(invalid, 422, 'Invalid');
    expect(fieldsOf(invalid)).toEqual(['status.phase']);
    const answer = await world.controller.patch(path, { status: { phase: 'Open', kopf: { progress: {} } } });
    expect(answer.body.status).toEqual({ phase: 'Open', kopf: { progress: {} } });
  });

  test('what a controller that runs here reports is written by its passes alone', async () => {
    const path = `${TENANTS}/${world.tenant}`;
    const reported = async (): Promise<unknown> => (await world.admin.get(path)).body.status?.observedGeneration;
    await expect.poll(reported, { timeout: 10_000 }).toBe(1);
    for (const [forged, words] of [
      [{ conditions: [] }, 'the condition EventStreamReady belongs to controller plumbline.dev/tenant-stream'],
      [{ eventStream: { id: '1' } }, 'status.eventStream belongs to controller plumbline.dev/tenant-stream'],
      [{ observedGeneration: null }, 'status.observedGeneration belongs to the driver'],
    ] as const) {
      expectStatus(await world.admin.patch(`${path}/status`, { status: forged }), 403, 'Forbidden', words);
    }
    const beside = await world.admin.patch(`${path}/status`, { status: { billing: { plan: 'small' } } });
    expect(beside.body.status).toMatchObject({ observedGeneration: 1, billing: { plan: 'small' } });
  });

  test('editors and viewers do not write status', async () => {
    const object = await createWidget(world);
    const path = `${world.widget(object.metadata.name)}/status`;
    for (const client of [world.editor, world.viewer]) {
      expectStatus(await client.put(path, { ...object, status: {} }), 403, 'Forbidden');
      expectStatus(await client.patch(path, { status: {} }), 403, 'Forbidden');
    }
  });
}

function timesOf({ body }: Answer): readonly string[] {
  return body.status.conditions.map((condition: { lastTransitionTime: string }) => condition.lastTransitionTime);
}
