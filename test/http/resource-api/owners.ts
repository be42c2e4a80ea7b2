import { describe, expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import {
  createWidget,
  expectStatus,
  fieldsOf,
  TENANTS,
  uniqueName,
  useWorld,
  type World,
} from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const PLANETS = '/apis/example.dev/v1/planets';
const FOREGROUND = { propagationPolicy: 'Foreground' };
const ORPHAN = { propagationPolicy: 'Orphan' };

export function owners(open: OpenTarget): void {
  const world = useWorld(open);

  describe('of an owner that is gone', () => {
    test('the dependents go too, and what depends on those', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner]);
      const grandchild = await dependentOf(world, [child]);
      expect((await world.editor.delete(pathOf(world, owner))).status).toBe(200);
      await untilGone(world, child, grandchild);
    });

    test('a dependent with finalizers of its own goes the normal way', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner], { finalizers: ['example.dev/a'] });
      await world.editor.delete(pathOf(world, owner));
      await untilDeleting(world, child);
      await world.editor.patch(pathOf(world, child), { metadata: { finalizers: null } });
      await untilGone(world, child);
    });

    test('a dependent of another one that lives stays, without the reference to the gone one', async () => {
      const [gone, alive] = [await createWidget(world), await createWidget(world)];
      const child = await dependentOf(world, [gone, alive]);
      await world.editor.delete(pathOf(world, gone));
      await untilOwnedBy(world, child, [alive]);
      await world.editor.delete(pathOf(world, alive));
      await untilGone(world, child);
    });

    test('a dependent is collected though another object has its name by then', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner]);
      await world.editor.delete(pathOf(world, owner));
      const successor = await createWidget(world, { name: owner.metadata.name });
      const itsChild = await dependentOf(world, [successor]);
      await untilGone(world, child);
      expect(await statusOf(world, itsChild)).toBe(200);
    });
  });

  test('nothing is made that is owned by an object that is being deleted', async () => {
    const owner = await createWidget(world, { finalizers: ['example.dev/a'] });
    const { name, uid } = owner.metadata;
    await world.editor.delete(pathOf(world, owner));
    const child = uniqueName('w');
    const ownerReferences = [{ apiVersion: 'example.dev/v1', kind: 'Widget', name, uid }];
    for (const query of ['', '?dryRun=All']) {
      const answer = await world.editor.post(world.widgets + query, { metadata: { name: child, ownerReferences } });
      expectStatus(answer, 409, 'Conflict', 'being deleted');
      expect(fieldsOf(answer)).toEqual(['metadata.ownerReferences']);
    }
    expectStatus(await world.editor.get(world.widget(child)), 404, 'NotFound');
  });

  test('a dependent of an owner that never was is collected', async () => {
    const owner = await createWidget(world);
    await world.editor.delete(pathOf(world, owner));
    await untilGone(world, await dependentOf(world, [owner]));
  });

  test.each<[string, object]>([
    ['name', { name: 'somebody-else' }],
    ['kind', { kind: 'Vault', apiVersion: 'example.dev/v1beta1' }],
    ['uid', { uid: 'not-a-uid' }],
  ])('a reference with another %s than its owner refers to nothing', async (_what, change) => {
    const owner = await createWidget(world);
    const { uid, name } = owner.metadata;
    const reference = { apiVersion: 'example.dev/v1', kind: 'Widget', name, uid, ...change };
    await untilGone(world, await createWidget(world, { ownerReferences: [reference] }));
  });

  test('an owner in another tenant is none', async () => {
    const other = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name: other } });
    const widgets = `/apis/example.dev/v1/namespaces/${other}/widgets`;
    const stranger = (await world.admin.post(widgets, { metadata: { name: uniqueName('w') }, spec: {} })).body;
    await untilGone(world, await dependentOf(world, [stranger]));
    expect((await world.admin.get(`${widgets}/${stranger.metadata.name}`)).status).toBe(200);
  });

  test('a cluster-scoped owner owns in every tenant', async () => {
    const planet = (await world.admin.post(PLANETS, { metadata: { name: uniqueName('p') }, spec: {} })).body;
    const child = await dependentOf(world, [planet]);
    const orphan = await dependentOf(world, [await deleted(world)]);
    await untilGone(world, orphan);
    expect(await statusOf(world, child)).toBe(200);
    await world.admin.delete(`${PLANETS}/${planet.metadata.name}`);
    await untilGone(world, child);
  });

  test('a cluster-scoped object is never collected for a namespaced owner, and an Event tells so', async () => {
    const owner = await createWidget(world);
    const planet = (
      await world.admin.post(PLANETS, {
        metadata: { name: uniqueName('p'), ownerReferences: [referenceTo(owner)] },
        spec: {},
      })
    ).body;
    await world.editor.delete(pathOf(world, owner));
    const selector = `fieldSelector=involvedObject.uid=${planet.metadata.uid}`;
    await expect
      .poll(async () => (await world.admin.get(`/api/v1/events?${selector}`)).body.items, { timeout: 10_000 })
      .toMatchObject([{ reason: 'OwnerRefInvalidNamespace', type: 'Warning' }]);
    await untilGone(world, await dependentOf(world, [owner]));
    expect((await world.admin.get(`${PLANETS}/${planet.metadata.name}`)).body).toEqual(planet);
  });

  test('an owner of a kind that is not served here is not taken for absent', async () => {
    const reference = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: crypto.randomUUID() };
    const child = await createWidget(world, { ownerReferences: [reference] });
    await untilGone(world, await dependentOf(world, [await deleted(world)]));
    expect((await world.editor.get(pathOf(world, child))).body).toEqual(child);
  });

  describe('in the foreground', () => {
    test('the owner waits for a blocking dependent, says so in the object and in lists, and goes after it', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner], { finalizers: ['example.dev/a'] });
      const answer = await world.editor.delete(pathOf(world, owner), FOREGROUND);
      expect(answer.status).toBe(202);
      expect(answer.body.metadata.finalizers).toEqual(['foregroundDeletion']);
      await untilDeleting(world, child);
      const blocked = {
        type: 'DeletionBlocked',
        status: 'True',
        reason: 'Dependents',
        message: expect.stringContaining(`Widget "${child.metadata.name}"`),
        lastTransitionTime: expect.stringMatching(/Z$/),
        blockers: [
          {
            dependent: {
              apiVersion: 'example.dev/v1',
              kind: 'Widget',
              name: child.metadata.name,
              uid: child.metadata.uid,
            },
            since: expect.stringMatching(/Z$/),
          },
        ],
      };
      await expect
        .poll(async () => (await world.editor.get(pathOf(world, owner))).body.status?.conditions, { timeout: 10_000 })
        .toMatchObject([blocked]);
      const list = await world.editor.get(`${world.widgets}?fieldSelector=metadata.name=${owner.metadata.name}`);
      expect(list.body.items[0].status.conditions).toMatchObject([blocked]);
      await world.editor.patch(pathOf(world, child), { metadata: { finalizers: null } });
      await untilGone(world, child, owner);
    });

    test('a dependent that does not block holds nothing up, and goes too', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner], { finalizers: ['example.dev/a'] }, false);
      await world.editor.delete(pathOf(world, owner), FOREGROUND);
      await untilGone(world, owner);
      await untilDeleting(world, child);
    });

    test('an owner without dependents just goes', async () => {
      const owner = await createWidget(world);
      expect((await world.editor.delete(`${pathOf(world, owner)}?propagationPolicy=Foreground`)).status).toBe(202);
      await untilGone(world, owner);
    });

    test('a dependent with another owner that lives leaves the one that waits, and stays', async () => {
      const [owner, alive] = [await createWidget(world), await createWidget(world)];
      const child = await dependentOf(world, [owner, alive]);
      await world.editor.delete(pathOf(world, owner), FOREGROUND);
      await untilGone(world, owner);
      expect((await world.editor.get(pathOf(world, child))).body.metadata.ownerReferences).toEqual([
        referenceTo(alive),
      ]);
    });

    test('what depends on dependents goes before them', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner]);
      const grandchild = await dependentOf(world, [child], { finalizers: ['example.dev/a'] });
      await world.editor.delete(pathOf(world, owner), FOREGROUND);
      await untilDeleting(world, grandchild);
      expect(await statusOf(world, child)).toBe(200);
      expect(await statusOf(world, owner)).toBe(200);
      await world.editor.patch(pathOf(world, grandchild), { metadata: { finalizers: null } });
      await untilGone(world, grandchild, child, owner);
    });

    test.each([1, 2, 3])('a cycle ends when %i of its objects are deleted', async (count) => {
      const ring = [await createWidget(world), await createWidget(world), await createWidget(world)];
      for (const [index, object] of ring.entries()) await adopt(world, object, ring.at(index - 1));
      const answers = await Promise.all(
        ring.slice(0, count).map((object) => world.editor.delete(pathOf(world, object), FOREGROUND)),
      );
      // The first may have taken the others along already.
      for (const { status } of answers) expect([202, 404]).toContain(status);
      await untilGone(world, ...ring);
    });

    test('an object that owns itself ends', async () => {
      const object = await createWidget(world);
      await adopt(world, object, object);
      await world.editor.delete(pathOf(world, object), FOREGROUND);
      await untilGone(world, object);
    });

    test('a second request with another policy outranks the first', async () => {
      const owner = await createWidget(world);
      const child = await dependentOf(world, [owner], { finalizers: ['example.dev/a'] });
      await world.editor.delete(pathOf(world, owner), FOREGROUND);
      const same = await world.editor.delete(pathOf(world, owner));
      expect(same.status).toBe(202);
      expect(same.body.metadata.finalizers).toEqual(['foregroundDeletion']);
      const { status } = await world.editor.delete(pathOf(world, owner), { propagationPolicy: 'Background' });
      expect(status).toBe(200);
      expect(await statusOf(world, owner)).toBe(404);
      await untilDeleting(world, child);
    });
  });

  test('a cycle ends in the background', async () => {
    const [a, b] = [await createWidget(world), await createWidget(world)];
    await adopt(world, a, b);
    await adopt(world, b, a);
    await world.editor.delete(pathOf(world, a));
    await untilGone(world, a, b);
  });

  describe('orphaned', () => {
    test.each<[string, string, object]>([
      ['a policy in the body', '', ORPHAN],
      ['a policy in the query', '?propagationPolicy=Orphan', {}],
      ['orphanDependents', '', { orphanDependents: true }],
      ['orphanDependents in the query', '?orphanDependents=true', {}],
    ])('by %s, dependents live on without the reference, and the owner goes', async (_how, query, options) => {
      const owner = await createWidget(world);
      const children = [await dependentOf(world, [owner]), await dependentOf(world, [owner])];
      const answer = await world.editor.delete(pathOf(world, owner) + query, options);
      expect(answer.status).toBe(202);
      expect(answer.body.metadata.finalizers).toEqual(['orphan']);
      await untilGone(world, owner);
      for (const child of children) {
        const { body } = await world.editor.get(pathOf(world, child));
        expect(body.metadata).toMatchObject({ uid: child.metadata.uid, generation: 1 });
        expect(body.metadata.ownerReferences).toBeUndefined();
      }
    });

    test('because the object says so itself, unless the request says otherwise', async () => {
      const owner = await createWidget(world, { finalizers: ['orphan'] });
      const child = await dependentOf(world, [owner]);
      expect((await world.editor.delete(pathOf(world, owner))).status).toBe(202);
      await untilGone(world, owner);
      expect(await statusOf(world, child)).toBe(200);
      const other = await createWidget(world, { finalizers: ['orphan'] });
      const itsChild = await dependentOf(world, [other]);
      expect((await world.editor.delete(pathOf(world, other), { orphanDependents: false })).status).toBe(200);
      await untilGone(world, itsChild);
    });
  });

  describe('are refused', () => {
    test('when they are being deleted: nothing can be adopted by them', async () => {
      const owner = await createWidget(world, { finalizers: ['example.dev/a'] });
      const object = await createWidget(world);
      await world.editor.delete(pathOf(world, owner));
      const answer = await world.editor.patch(pathOf(world, object), {
        metadata: { ownerReferences: [referenceTo(owner)] },
      });
      expectStatus(answer, 409, 'Conflict', 'is being deleted: it can become the owner of nothing');
    });

    test('of an object that is being deleted', async () => {
      const owner = await createWidget(world);
      const object = await createWidget(world, { finalizers: ['example.dev/a'] });
      await world.editor.delete(pathOf(world, object));
      const answer = await world.editor.patch(pathOf(world, object), {
        metadata: { ownerReferences: [referenceTo(owner)] },
      });
      expectStatus(answer, 409, 'Conflict', 'object is being deleted: nothing can become its owner');
    });

    test('when two of them control', async () => {
      const references = [await createWidget(world), await createWidget(world)].map((owner) => ({
        ...referenceTo(owner),
        controller: true,
      }));
      const answer = await world.editor.post(world.widgets, {
        metadata: { name: uniqueName('w'), ownerReferences: references },
      });
      expectStatus(answer, 422, 'Invalid', 'only one owner can have controller set to true');
    });

    test('when there are more than 200', async () => {
      const owner = referenceTo(await createWidget(world));
      const answer = await world.editor.post(world.widgets, {
        metadata: { name: uniqueName('w'), ownerReferences: Array.from({ length: 201 }, () => owner) },
      });
      expectStatus(answer, 422, 'Invalid', 'an object has at most 200 owners; got 201');
    });

    test('with the finalizers of two policies', async () => {
      const answer = await world.editor.post(world.widgets, {
        metadata: { name: uniqueName('w'), finalizers: ['orphan', 'foregroundDeletion'] },
      });
      expectStatus(answer, 422, 'Invalid', 'cannot be both set');
    });
  });

  test('a policy and orphanDependents together are refused, and nothing is deleted', async () => {
    const object = await createWidget(world);
    const answer = await world.editor.delete(pathOf(world, object), { ...ORPHAN, orphanDependents: true });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['orphanDependents']);
    expect(await statusOf(world, object)).toBe(200);
  });

  test('no policy puts a finalizer on by another write than DELETE', async () => {
    const object = await createWidget(world, { finalizers: ['example.dev/a'] });
    await world.editor.delete(pathOf(world, object));
    const finalizers = ['example.dev/a', 'foregroundDeletion'];
    const answer = await world.editor.patch(pathOf(world, object), { metadata: { finalizers } });
    expectStatus(answer, 422, 'Invalid', 'no new finalizers');
  });

  test('a dry run of any policy leaves everything as it is', async () => {
    const owner = await createWidget(world);
    const child = await dependentOf(world, [owner]);
    for (const propagationPolicy of ['Background', 'Foreground', 'Orphan']) {
      await world.editor.delete(pathOf(world, owner), { propagationPolicy, dryRun: ['All'] });
    }
    await untilGone(world, await dependentOf(world, [await deleted(world)]));
    expect((await world.editor.get(pathOf(world, owner))).body).toEqual(owner);
    expect((await world.editor.get(pathOf(world, child))).body).toEqual(child);
  });

  test('what others may not see, they cannot delete through: a viewer changes nothing', async () => {
    const owner = await createWidget(world);
    expectStatus(await world.viewer.delete(pathOf(world, owner), FOREGROUND), 403, 'Forbidden');
    const stranger = await clientOf(world.target, { roles: ['editor'], tenants: [uniqueName('other')] });
    expectStatus(await stranger.delete(pathOf(world, owner), ORPHAN), 404, 'NotFound');
  });
}

// oxlint-disable-next-line typescript/no-explicit-any -- as it came over the wire
type Sent = any;

function referenceTo(owner: Sent, isBlocking: boolean = true): object {
  const { apiVersion, kind, metadata } = owner;
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion: isBlocking };
}

async function dependentOf(
  world: World,
  all: readonly Sent[],
  metadata: object = {},
  isBlocking: boolean = true,
): Promise<Sent> {
  return createWidget(world, { ...metadata, ownerReferences: all.map((owner) => referenceTo(owner, isBlocking)) });
}

async function adopt(world: World, object: Sent, owner: Sent): Promise<void> {
  const answer = await world.editor.patch(pathOf(world, object), {
    metadata: { ownerReferences: [referenceTo(owner)] },
  });
  expect(answer.status, answer.text).toBe(200);
}

/** An object that is gone: what refers to it, and is seen to be gone, tells that a collection came by. */
async function deleted(world: World): Promise<Sent> {
  const object = await createWidget(world);
  await world.editor.delete(pathOf(world, object));
  return object;
}

function pathOf(world: World, object: Sent): string {
  return world.widget(object.metadata.name);
}

async function statusOf(world: World, object: Sent): Promise<number> {
  return (await world.editor.get(pathOf(world, object))).status;
}

async function untilGone(world: World, ...objects: readonly Sent[]): Promise<void> {
  const uids = new Set(objects.map(({ metadata }) => metadata.uid));
  await expect
    .poll(
      async () => {
        const answers = await Promise.all(objects.map((object) => world.editor.get(pathOf(world, object))));
        return answers.filter(({ body }) => uids.has(body.metadata?.uid)).map(({ body }) => body.metadata.name);
      },
      { timeout: 15_000 },
    )
    .toEqual([]);
}

async function untilDeleting(world: World, object: Sent): Promise<void> {
  await expect
    .poll(async () => (await world.editor.get(pathOf(world, object))).body.metadata?.deletionTimestamp, {
      timeout: 15_000,
    })
    .toBeDefined();
}

async function untilOwnedBy(world: World, object: Sent, expected: readonly Sent[]): Promise<void> {
  await expect
    .poll(async () => (await world.editor.get(pathOf(world, object))).body.metadata?.ownerReferences, {
      timeout: 15_000,
    })
    .toEqual(expected.map((owner) => referenceTo(owner)));
}
