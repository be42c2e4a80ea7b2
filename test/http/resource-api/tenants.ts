import { beforeAll, describe, expect, test } from 'vitest';

import { clientOf, type Client } from '#test/http/client.ts';
import {
  expectStatus,
  fieldsOf,
  removeTenant,
  requestDeletion,
  TENANTS,
  uniqueName,
  useWorld,
} from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const PLANETS = '/apis/example.dev/v1/planets';

export function tenants(open: OpenTarget): void {
  const world = useWorld(open);

  test('a tenant must exist before anything is created in it', async () => {
    const name = uniqueName('t');
    const widgets = `/apis/example.dev/v1/namespaces/${name}/widgets`;
    expectStatus(
      await world.admin.post(widgets, { metadata: { name: 'x' } }),
      404,
      'NotFound',
      `tenant "${name}" not found`,
    );
    expectStatus(await world.admin.get(widgets), 404, 'NotFound', `tenant "${name}" not found`);
    const created = await world.admin.post(TENANTS, {
      metadata: { name },
      spec: { displayName: 'Name' },
    });
    expect(created.status).toBe(201);
    expect(created.body.metadata).not.toHaveProperty('namespace');
    expect((await world.admin.post(widgets, { metadata: { name: 'x' } })).status).toBe(201);
  });

  test('a tenant that is deleted waits for its objects, and says so; then it goes, and its name can be used again', async () => {
    const name = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name } });
    const widget = `/apis/example.dev/v1/namespaces/${name}/widgets/x`;
    await world.admin.post(widget.slice(0, -2), { metadata: { name: 'x' } });
    await requestDeletion(world, name);
    const blocked = async (): Promise<unknown> =>
      (await world.admin.get(`${TENANTS}/${name}`)).body.status?.conditions?.find(
        ({ type }: { type: string }) => type === 'DeletionBlocked',
      );
    await expect
      .poll(blocked, { timeout: 10_000 })
      .toMatchObject({ status: 'True', message: expect.stringContaining('1 widgets.example.dev') });
    expect((await world.admin.delete(widget)).status).toBe(200);
    await removeTenant(world, name);
    expectStatus(await world.admin.get(widget.slice(0, -2)), 404, 'NotFound');
    expect((await world.admin.post(TENANTS, { metadata: { name } })).status).toBe(201);
  });

  test('a tenant that is being deleted takes nothing new', async () => {
    const name = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name, finalizers: ['example.dev/hold'] } });
    const widgets = `/apis/example.dev/v1/namespaces/${name}/widgets`;
    const { body } = await world.admin.post(widgets, { metadata: { name: 'x' }, spec: { size: 1 } });
    expect((await world.admin.delete(`${TENANTS}/${name}`)).status).toBe(202);
    expectStatus(await world.admin.post(widgets, { metadata: { name: 'y' } }), 409, 'Conflict', 'is being deleted');
    expectStatus(
      await world.admin.put(`${widgets}/x`, { ...body, spec: { size: 2 } }),
      409,
      'Conflict',
      'is being deleted',
    );
    expect((await world.admin.delete(`${widgets}/x`)).status).toBe(200);
    // That of a controller that runs here comes off by its passes.
    const { finalizers } = (await world.admin.get(`${TENANTS}/${name}`)).body.metadata;
    const left = finalizers.filter((finalizer: string) => finalizer !== 'example.dev/hold');
    const released = await world.admin.patch(`${TENANTS}/${name}`, { metadata: { finalizers: left } });
    expect(released.status).toBe(200);
    await expect.poll(async () => (await world.admin.get(`${TENANTS}/${name}`)).status, { timeout: 30_000 }).toBe(404);
  });

  test.for([
    ['system', 'metadata.name'],
    ['has.dots', 'metadata.name'],
    ['Upper', 'metadata.name'],
    ['x'.repeat(64), 'metadata.name'],
  ] as const)('"%s" cannot be a tenant', async ([name, field]) => {
    const answer = await world.admin.post(TENANTS, { metadata: { name } });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual([field]);
  });

  test('the built-in tenant is none that a path can name', async () => {
    for (const path of [
      '/apis/example.dev/v1/namespaces/system/widgets',
      '/apis/plumbline.dev/v1/namespaces/system/tenants',
    ]) {
      expectStatus(await world.admin.get(path), 404, 'NotFound');
      expectStatus(await world.admin.post(path, { metadata: { name: 'x' } }), 404, 'NotFound');
    }
  });

  describe('a caller of some tenants', () => {
    let other: string;
    let limited: Client;

    beforeAll(async () => {
      other = uniqueName('t');
      await world.admin.post(TENANTS, { metadata: { name: other, labels: { color: 'red' } } });
      limited = await clientOf(world.target, { roles: ['admin'], tenants: [world.tenant, other, 'no-such-tenant'] });
    });

    test('reads their Tenant objects, and no other one', async () => {
      expect((await world.viewer.get(`${TENANTS}/${world.tenant}`)).status).toBe(200);
      expectStatus(await world.viewer.get(`${TENANTS}/${other}`), 404, 'NotFound');
    });

    test('lists exactly these and the shared one, in pages, without a cursor', async () => {
      const names = [world.tenant, other, 'shared'].toSorted();
      const { body } = await limited.get(TENANTS);
      expect(body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(names);
      expect(body.metadata).toEqual({});
      const first = (await limited.get(`${TENANTS}?limit=1`)).body;
      const rest = (await limited.get(`${TENANTS}?limit=2&continue=${first.metadata.continue}`)).body;
      expect([...first.items, ...rest.items].map(({ metadata }) => metadata.name)).toEqual(names);
      expect(rest.metadata).toEqual({});
      expect((await limited.get(`${TENANTS}?labelSelector=color%3Dred`)).body.items).toHaveLength(1);
      expect((await limited.get(`${TENANTS}?fieldSelector=metadata.name%3D${other}`)).body.items).toHaveLength(1);
    });

    test('writes none of them, whatever its role: 403 for what it sees, 404 for the rest', async () => {
      const { body } = await limited.get(`${TENANTS}/${other}`);
      expectStatus(await limited.put(`${TENANTS}/${other}`, body), 403, 'Forbidden');
      expectStatus(await limited.patch(`${TENANTS}/${other}/status`, { status: {} }), 403, 'Forbidden');
      expectStatus(await limited.delete(`${TENANTS}/${other}`), 403, 'Forbidden');
      expectStatus(await limited.post(TENANTS, { metadata: { name: uniqueName('t') } }), 403, 'Forbidden');
      expectStatus(await world.viewer.delete(`${TENANTS}/${other}`), 404, 'NotFound');
    });

    test('sees no other cluster-scoped object', async () => {
      const name = uniqueName('p');
      expect((await world.admin.post(PLANETS, { metadata: { name } })).status).toBe(201);
      expectStatus(await limited.get(`${PLANETS}/${name}`), 404, 'NotFound');
      expectStatus(await limited.get(PLANETS), 403, 'Forbidden');
    });
  });

  test('cluster-scoped objects are listed with a cursor for callers of all tenants, and written by admins alone', async () => {
    const editor = await clientOf(world.target, { roles: ['editor'], tenants: '*' });
    const name = uniqueName('p');
    const { body } = await world.admin.post(PLANETS, { metadata: { name }, spec: { moons: 2 } });
    const list = (await editor.get(`${PLANETS}?fieldSelector=metadata.name%3D${name}`)).body;
    expect(list).toMatchObject({ kind: 'PlanetList', items: [body], metadata: { cursor: expect.any(String) } });
    expectStatus(await editor.put(`${PLANETS}/${name}`, body), 403, 'Forbidden', 'admins of all tenants');
    expectStatus(
      await world.admin.post(PLANETS, { metadata: { name: 'x', namespace: 'acme' } }),
      400,
      'BadRequest',
      'cluster-scoped',
    );
    expectStatus(await world.admin.get(`/apis/example.dev/v1/namespaces/${world.tenant}/planets`), 404, 'NotFound');
    expectStatus(await world.admin.get('/apis/example.dev/v1/widgets/x'), 404, 'NotFound', 'namespaced');
    expect((await world.admin.delete(`${PLANETS}/${name}`)).status).toBe(200);
  });

  test('a tenant that is not there and one that the caller may not see answer alike, to the letter', async () => {
    const [foreign, missing] = [uniqueName('t'), uniqueName('t')];
    await world.admin.post(TENANTS, { metadata: { name: foreign } });
    await world.admin.post(`/apis/example.dev/v1/namespaces/${foreign}/widgets`, { metadata: { name: 'x' } });
    const body = { metadata: { name: 'x', resourceVersion: '1' }, spec: {}, status: {} };
    for (const [method, path] of [
      ['GET', '/apis/example.dev/v1/namespaces/T/widgets'],
      ['POST', '/apis/example.dev/v1/namespaces/T/widgets'],
      ['GET', '/apis/example.dev/v1/namespaces/T/widgets/x'],
      ['PUT', '/apis/example.dev/v1/namespaces/T/widgets/x'],
      ['PATCH', '/apis/example.dev/v1/namespaces/T/widgets/x'],
      ['DELETE', '/apis/example.dev/v1/namespaces/T/widgets/x'],
      ['PUT', '/apis/example.dev/v1/namespaces/T/widgets/x/status'],
      ['GET', `${TENANTS}/T`],
      ['DELETE', `${TENANTS}/T`],
    ] as const) {
      const [there, nowhere] = await Promise.all(
        [foreign, missing].map(async (tenant) => {
          const sent = method === 'GET' || method === 'DELETE' ? undefined : body;
          const answer = await world.editor.send(method, path.replace('T', tenant), sent);
          return `${answer.status} ${answer.text.replaceAll(tenant, 'T')}`;
        }),
      );
      expect(there, `${method} ${path}`).toMatch(/^404 /);
      expect(there).toBe(nowhere);
    }
  });
}
