import { beforeAll, describe, expect, test } from 'vitest';

import { clientOf, type Client } from '#test/http/client.ts';
import { expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const WIDGETS = '/apis/example.dev/v1/namespaces/shared/widgets';
const ALL_WIDGETS = '/apis/example.dev/v1/widgets';

export function sharedTenant(open: OpenTarget): void {
  const world = useWorld(open);
  let name: string;
  let widget: { readonly metadata: { readonly uid: string } };
  let nobody: Client;

  beforeAll(async () => {
    name = uniqueName('common');
    const { status, body } = await world.admin.post(WIDGETS, { metadata: { name }, spec: { size: 1 } });
    expect(status).toBe(201);
    widget = body;
    nobody = await clientOf(world.target, { roles: ['viewer'], tenants: [] });
  });

  const selected = `?fieldSelector=metadata.name%3D`;

  test('is there from the beginning', async () => {
    const { status, body } = await world.admin.get(`${TENANTS}/shared`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: 'Tenant', metadata: { name: 'shared' }, spec: {} });
  });

  test('is read by everybody who has a role, also by a token that names no tenant', async () => {
    for (const client of [world.viewer, world.editor, world.controller, nobody]) {
      expect((await client.get(`${WIDGETS}/${name}`)).body).toEqual(widget);
      expect((await client.get(`${WIDGETS}${selected}${name}`)).body.items).toEqual([widget]);
      expect((await client.get(`${TENANTS}/shared`)).status).toBe(200);
    }
    const powerless = await clientOf(world.target, { roles: [], tenants: [] });
    expectStatus(await powerless.get(`${WIDGETS}/${name}`), 403, 'Forbidden', 'roles: none');
  });

  test('is in the lists over all tenants that a caller may see, and in its list of tenants', async () => {
    for (const client of [world.viewer, nobody]) {
      const { items, metadata } = (await client.get(`${ALL_WIDGETS}${selected}${name}`)).body;
      expect(items).toEqual([widget]);
      expect(metadata.cursor).toBeDefined();
      expect(
        (await client.get(`${ALL_WIDGETS}?fieldSelector=metadata.namespace%3Dshared,metadata.name%3D${name}`)).body,
      ).toMatchObject({ items: [widget] });
    }
    const tenants = (await nobody.get(TENANTS)).body.items;
    expect(tenants.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual(['shared']);
  });

  test('is written by tokens that name it, and by nobody else: 403 for what is there, and for what is not', async () => {
    const member = await clientOf(world.target, { roles: ['editor'], tenants: [world.tenant, 'shared'] });
    const own = uniqueName('own');
    const { body, status } = await member.post(WIDGETS, { metadata: { name: own } });
    expect(status).toBe(201);
    const stranger = await clientOf(world.target, {
      roles: ['admin', 'controller', 'editor'],
      tenants: [world.tenant],
    });
    const path = `${WIDGETS}/${own}`;
    for (const answer of [
      await stranger.post(WIDGETS, { metadata: { name: uniqueName('w') } }),
      await stranger.put(path, { ...body, spec: { size: 2 } }),
      await stranger.patch(path, { metadata: { labels: { a: 'b' } } }),
      await stranger.patch(`${path}/status`, { status: { ready: true } }),
      await stranger.delete(path),
      await stranger.delete(`${WIDGETS}/${uniqueName('missing')}`),
    ]) {
      expectStatus(
        answer,
        403,
        'Forbidden',
        'everybody reads the tenant "shared"; to write in it, a token must name it',
      );
    }
    expect((await stranger.get(path)).body).toEqual(body);
    expect((await member.delete(path)).status).toBe(200);
  });

  test('opens no other tenant: strangers still find nothing', async () => {
    const { body } = await world.editor.post(world.widgets, { metadata: { name: uniqueName('w') } });
    expectStatus(await nobody.get(world.widget(body.metadata.name)), 404, 'NotFound');
    expectStatus(await nobody.get(world.widgets), 404, 'NotFound');
    expectStatus(await nobody.get(`${TENANTS}/${world.tenant}`), 404, 'NotFound');
    expect((await nobody.get(`${ALL_WIDGETS}${selected}${body.metadata.name}`)).body.items).toEqual([]);
  });

  describe('built-in tenants', () => {
    test.each(['shared', 'system'])('cannot be deleted: %s', async (builtIn) => {
      const answer = await world.admin.delete(`${TENANTS}/${builtIn}`);
      expectStatus(answer, 403, 'Forbidden', `tenant "${builtIn}" is built in and cannot be deleted`);
    });

    test('still refuse by role first', async () => {
      expectStatus(await world.editor.delete(`${TENANTS}/shared`), 403, 'Forbidden', 'admins of all tenants');
      expectStatus(await world.editor.delete(`${TENANTS}/system`), 404, 'NotFound');
    });

    test('cannot be made again', async () => {
      expectStatus(await world.admin.post(TENANTS, { metadata: { name: 'shared' } }), 409, 'AlreadyExists');
    });
  });
}
