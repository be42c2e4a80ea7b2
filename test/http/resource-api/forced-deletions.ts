import { describe, expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import {
  createWidget,
  expectStatus,
  fieldsOf,
  makeWorld,
  removeTenant,
  TENANTS,
  uniqueName,
  useWorld,
} from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const REASON = { reason: 'its controller was uninstalled' };

export function forcedDeletions(open: OpenTarget): void {
  const world = useWorld(open);
  const force = (name: string): string => `${world.widget(name)}/force-delete`;
  const audit = (): string => `/apis/plumbline.dev/v1/namespaces/${world.tenant}/forceddeletions`;

  /** Of an object that is being deleted, held by these. */
  async function held(...finalizers: readonly string[]): Promise<{ name: string; uid: string }> {
    const { metadata } = await createWidget(world, { finalizers });
    expect((await world.editor.delete(world.widget(metadata.name))).status).toBe(202);
    return metadata;
  }

  test('an admin ends a deletion that nobody else ends; who, when, what and why is kept, and told by an Event', async () => {
    const { name, uid } = await held('gone.dev/a', 'gone.dev/b');
    const jane = await clientOf(world.target, { roles: ['admin'], tenants: [world.tenant], subject: 'jane' });
    const answer = await jane.post(force(name), REASON);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.metadata.uid).toBe(uid);
    expectStatus(await world.editor.get(world.widget(name)), 404, 'NotFound');
    const { body } = await world.viewer.get(audit());
    expect(body.kind).toBe('ForcedDeletionList');
    expect(body.items.filter((each: { object: { uid: string } }) => each.object.uid === uid)).toMatchObject([
      {
        metadata: { namespace: world.tenant, creationTimestamp: expect.stringMatching(/Z$/) },
        object: { group: 'example.dev', kind: 'Widget', name, uid },
        removedFinalizers: ['gone.dev/a', 'gone.dev/b'],
        deletionRequestedAt: expect.stringMatching(/Z$/),
        by: 'jane',
        reason: REASON.reason,
      },
    ]);
    const events = await world.viewer.get(
      `/api/v1/namespaces/${world.tenant}/events?fieldSelector=involvedObject.uid=${uid}`,
    );
    expect(events.body.items).toMatchObject([
      {
        reason: 'FinalizersRemoved',
        type: 'Warning',
        message: `jane took off gone.dev/a, gone.dev/b: ${REASON.reason}`,
      },
    ]);
  });

  test('some finalizers can be named: the others hold it on', async () => {
    const { name } = await held('gone.dev/a', 'gone.dev/b');
    const answer = await world.admin.post(force(name), { ...REASON, finalizers: ['gone.dev/a'] });
    expect(answer.status).toBe(202);
    expect(answer.body.metadata.finalizers).toEqual(['gone.dev/b']);
  });

  test('one that the object has not is 422 by its name, and nothing is taken off', async () => {
    const { name, uid } = await held('gone.dev/a');
    const answer = await world.admin.post(force(name), { ...REASON, finalizers: ['gone.dev/a', 'gone.dev/typo'] });
    expectStatus(answer, 422, 'Invalid', 'gone.dev/typo');
    expect(fieldsOf(answer)).toEqual(['finalizers']);
    expect((await world.editor.get(world.widget(name))).body.metadata.finalizers).toEqual(['gone.dev/a']);
    expect((await world.admin.get(audit())).text).not.toContain(uid);
  });

  test('dependents that are to stay behind do so: orphan comes off by itself', async () => {
    const owner = await createWidget(world, { finalizers: ['gone.dev/a'] });
    const { name, uid } = owner.metadata;
    const reference = { apiVersion: 'example.dev/v1', kind: 'Widget', name, uid };
    const child = await createWidget(world, { ownerReferences: [reference] });
    await world.editor.delete(world.widget(name), { propagationPolicy: 'Orphan' });
    expect([200, 202]).toContain((await world.admin.post(force(name), REASON)).status);
    await expect.poll(async () => (await world.editor.get(world.widget(name))).status, { timeout: 15_000 }).toBe(404);
    const { body } = await world.editor.get(world.widget(child.metadata.name));
    expect(body.metadata.uid).toBe(child.metadata.uid);
    expect(body.metadata.ownerReferences).toBeUndefined();
  });

  test.each(['viewer', 'editor', 'controller'] as const)('a %s may not, and nothing is kept', async (role) => {
    const { name, uid } = await held('gone.dev/a');
    expectStatus(await world[role].post(force(name), REASON), 403, 'Forbidden', 'force the deletion of');
    expect((await world.editor.get(world.widget(name))).status).toBe(200);
    expect((await world.admin.get(audit())).text).not.toContain(uid);
  });

  test('an object that is not being deleted is left alone', async () => {
    const object = await createWidget(world, { finalizers: ['gone.dev/a'] });
    expectStatus(await world.admin.post(force(object.metadata.name), REASON), 409, 'Conflict', 'not being deleted');
    expect((await world.editor.get(world.widget(object.metadata.name))).body).toEqual(object);
  });

  test('another uid than the one that was meant is 409', async () => {
    const { name } = await held('gone.dev/a');
    const preconditions = { uid: crypto.randomUUID() };
    expectStatus(await world.admin.post(force(name), { ...REASON, preconditions }), 409, 'Conflict', 'recreated');
    expect((await world.editor.get(world.widget(name))).status).toBe(200);
  });

  test('a dry run keeps nothing', async () => {
    const { name, uid } = await held('gone.dev/a');
    expect((await world.admin.post(`${force(name)}?dryRun=All`, REASON)).status).toBe(200);
    expect((await world.editor.get(world.widget(name))).status).toBe(200);
    expect((await world.admin.get(audit())).text).not.toContain(uid);
  });

  test.each<[string, unknown]>([
    ['no reason', {}],
    ['an empty reason', { reason: ' ' }],
    ['a reason of several lines', { reason: 'a\nb' }],
    ['finalizers that are no list', { ...REASON, finalizers: 'a' }],
    ['an unknown field', { ...REASON, finalizer: 'a' }],
    ['preconditions that are unknown', { ...REASON, preconditions: { uuid: 'x' } }],
  ])('a request with %s is 400', async (_what, body) => {
    const { name } = await held('gone.dev/a');
    expectStatus(await world.admin.post(force(name), body), 400, 'BadRequest');
    expect((await world.editor.get(world.widget(name))).status).toBe(200);
  });

  test('a missing object is 404', async () => {
    expectStatus(await world.admin.post(force('nobody'), REASON), 404, 'NotFound');
  });

  describe('what was kept', () => {
    test('comes in pages, the latest first', async () => {
      const names: string[] = [];
      for (let index = 0; index < 3; index++) {
        const { name } = await held('gone.dev/a');
        await world.admin.post(force(name), REASON);
        names.unshift(name);
      }
      const first = await world.admin.get(`${audit()}?limit=2`);
      const token = encodeURIComponent(first.body.metadata.continue);
      const second = await world.admin.get(`${audit()}?limit=1&continue=${token}`);
      const shown = [...first.body.items, ...second.body.items];
      expect(shown.map((each: { object: { name: string } }) => each.object.name)).toEqual(names);
    });

    test('is nothing for a stranger, as is the tenant', async () => {
      const stranger = await clientOf(world.target, { roles: ['admin'], tenants: [uniqueName('other')] });
      expectStatus(await stranger.get(audit()), 404, 'NotFound');
      expect((await stranger.get('/apis/plumbline.dev/v1/forceddeletions')).body.items).toEqual([]);
    });

    test('is nothing for a later tenant of the same name; who sees all tenants still has it', async () => {
      const earlier = await makeWorld(world.target);
      const path = `/apis/plumbline.dev/v1/namespaces/${earlier.tenant}/forceddeletions`;
      const { name, uid } = (await createWidget(earlier, { finalizers: ['gone.dev/a'] })).metadata;
      await earlier.editor.delete(earlier.widget(name));
      expect((await earlier.admin.post(`${earlier.widget(name)}/force-delete`, REASON)).status).toBe(200);
      expect((await earlier.viewer.get(path)).text).toContain(uid);
      await removeTenant(earlier, earlier.tenant);
      expect((await earlier.admin.post(TENANTS, { metadata: { name: earlier.tenant } })).status).toBe(201);
      expect((await earlier.viewer.get(path)).body.items).toEqual([]);
      expect((await earlier.admin.get(path)).text).toContain(uid);
    });

    test('is there over all tenants for who sees them', async () => {
      const { name, uid } = await held('gone.dev/a');
      await world.admin.post(force(name), REASON);
      expect((await world.admin.get('/apis/plumbline.dev/v1/forceddeletions?limit=1000')).text).toContain(uid);
    });
  });
}
