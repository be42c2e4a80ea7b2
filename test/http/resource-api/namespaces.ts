import { expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import { expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function namespaces(open: OpenTarget): void {
  const world = useWorld(open);
  const PATH = '/api/v1/namespaces';
  const namesOf = (items: readonly { metadata: { name: string } }[]): string[] =>
    items.map((item) => item.metadata.name);

  test('a caller sees its tenants and the shared one, in the shape of Kubernetes', async () => {
    const { status, body } = await world.viewer.get(PATH);
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: 'NamespaceList', apiVersion: 'v1' });
    expect(namesOf(body.items)).toEqual(['shared', world.tenant].toSorted());
    const { uid } = (await world.admin.get(`${TENANTS}/${world.tenant}`)).body.metadata;
    const one = await world.viewer.get(`${PATH}/${world.tenant}`);
    // Its controller may be at work in between.
    const expected = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: expect.objectContaining({ name: world.tenant, uid }),
      spec: {},
      status: { phase: 'Active' },
    };
    expect(one.body).toEqual(expected);
    expect(body.items).toContainEqual(expected);
    expect(one.headers.get('ETag')).toBe(`"${one.body.metadata.resourceVersion}"`);
  });

  test('a tenant that is not there and one of others are not found in the words of kubectl', async () => {
    const foreign = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name: foreign } });
    expect((await world.admin.get(`${PATH}/${foreign}`)).status).toBe(200);
    for (const name of [foreign, uniqueName('t'), 'system', 'a.b', '%00']) {
      const answer = await world.viewer.get(`${PATH}/${name}`);
      expectStatus(
        answer,
        404,
        'NotFound',
        `namespaces "${decodeURIComponent(name).replace('\0', '\\u0000')}" not found`,
      );
      expect(answer.body.details).toMatchObject({ kind: 'namespaces' });
    }
    expect(namesOf((await world.viewer.get(PATH)).body.items)).not.toContain(foreign);
  });

  test('who sees all tenants pages through them, and selects', async () => {
    const label = uniqueName('l');
    const names = [uniqueName('t'), uniqueName('t')].toSorted();
    for (const name of names) await world.admin.post(TENANTS, { metadata: { name, labels: { label } } });
    const first = await world.admin.get(`${PATH}?limit=1&labelSelector=label=${label}`);
    expect(namesOf(first.body.items)).toEqual([names[0]]);
    const rest = `${PATH}?limit=500&labelSelector=label=${label}&continue=${first.body.metadata.continue}`;
    expect(namesOf((await world.admin.get(rest)).body.items)).toEqual([names[1]]);
    // It continues this list, and no other.
    const other = `${TENANTS}?labelSelector=label=${label}&continue=${first.body.metadata.continue}`;
    expectStatus(await world.admin.get(other), 400, 'BadRequest');
    const byName = await world.admin.get(`${PATH}?fieldSelector=metadata.name=${names[1]}`);
    expect(namesOf(byName.body.items)).toEqual([names[1]]);
  });

  test('they are only read, by who has a role, and not watched here', async () => {
    for (const path of [PATH, `${PATH}/${world.tenant}`]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        expectStatus(await world.admin.send(method, path, {}), 405, 'MethodNotAllowed');
      }
      const nobody = await clientOf(world.target, { roles: [], tenants: [world.tenant] });
      expectStatus(await nobody.get(path), 403, 'Forbidden');
    }
    expectStatus(await world.viewer.get(`${PATH}?watch=true`), 400, 'BadRequest', 'cannot be watched here');
  });
}
