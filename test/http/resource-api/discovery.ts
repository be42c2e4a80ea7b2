import { describe, expect, test } from 'vitest';

import { clientWith } from '#test/http/client.ts';
import { expectStatus, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';

export function discovery(open: OpenTarget): void {
  const world = useWorld(open);

  test('the groups, each with its versions and the one to prefer', async () => {
    const { status, body } = await world.viewer.get('/apis?timeout=32s');
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: 'APIGroupList', apiVersion: 'v1' });
    const group = body.groups.find(({ name }: { name: string }) => name === 'example.dev');
    expect(group).toEqual({
      name: 'example.dev',
      versions: [
        { groupVersion: 'example.dev/v1', version: 'v1' },
        { groupVersion: 'example.dev/v1beta1', version: 'v1beta1' },
      ],
      preferredVersion: { groupVersion: 'example.dev/v1', version: 'v1' },
    });
    expect((await world.viewer.get('/apis/example.dev')).body).toEqual({
      kind: 'APIGroup',
      apiVersion: 'v1',
      ...group,
    });
  });

  test('the resources of a version, under every name that people use, with their status', async () => {
    const { body } = await world.viewer.get('/apis/example.dev/v1');
    expect(body).toMatchObject({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'example.dev/v1' });
    expect(body.resources).toEqual(
      expect.arrayContaining([
        {
          name: 'widgets',
          singularName: 'widget',
          namespaced: true,
          kind: 'Widget',
          verbs: ['create', 'delete', 'get', 'list', 'patch', 'update'],
        },
        {
          name: 'widgets/status',
          singularName: '',
          namespaced: true,
          kind: 'Widget',
          verbs: ['get', 'patch', 'update'],
        },
        expect.objectContaining({ name: 'planets', namespaced: false }),
      ]),
    );
    expect(JSON.stringify(body)).not.toContain('vaults');
  });

  test('what was deleted by force is found too', async () => {
    const { body } = await world.viewer.get('/apis/plumbline.dev/v1');
    expect(body.resources).toContainEqual(expect.objectContaining({ name: 'forceddeletions', verbs: ['list'] }));
    expect((await world.viewer.get('/apis/example.dev/v1')).text).not.toContain('forceddeletions');
  });

  test('who asks what a token may do is told where that is said', async () => {
    const answer = await world.viewer.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {});
    expectStatus(answer, 404, 'NotFound', 'kubectl auth whoami');
  });

  test('every resource that is named can be listed where it says', async () => {
    for (const { name: group, versions } of (await world.admin.get('/apis')).body.groups) {
      for (const { version } of versions) {
        const { resources } = (await world.admin.get(`/apis/${group}/${version}`)).body;
        for (const { name, namespaced, verbs } of resources) {
          if (!verbs.includes('list')) continue;
          const place = namespaced ? `namespaces/${world.tenant}/` : '';
          expect((await world.admin.get(`/apis/${group}/${version}/${place}${name}?limit=1`)).status, name).toBe(200);
        }
      }
    }
  });

  test('the core group has the events of controllers, namespaces, and the quotas of tenants', async () => {
    expect((await world.viewer.get('/api')).body).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    const { body } = await world.viewer.get('/api/v1');
    expect(body).toMatchObject({
      kind: 'APIResourceList',
      groupVersion: 'v1',
      resources: [{ name: 'events' }, { name: 'namespaces' }, { name: 'resourcequotas' }],
    });
  });

  test('who asks for aggregated discovery is answered in the plain form that it also takes', async () => {
    for (const path of ['/api', '/apis']) {
      const { status, headers, body } = await world.viewer.send('GET', path, undefined, { Accept: AGGREGATED });
      expect([status, headers.get('Content-Type')]).toEqual([200, 'application/json']);
      expect(body.kind).toMatch(/^API(Versions|GroupList)$/);
    }
  });

  test('paths may end with a slash, as clients made from the document of Kubernetes ask for them', async () => {
    for (const path of ['/version', '/api', '/apis']) {
      expect((await world.viewer.get(`${path}/`)).text).toBe((await world.viewer.get(path)).text);
    }
  });

  describe('of strangers', () => {
    test('nothing is told without a token but the version of the program', async () => {
      const nobody = clientWith(world.target.baseUrl, undefined);
      for (const path of ['/api', '/api/v1', '/apis', '/apis/example.dev', '/apis/example.dev/v1', '/apis/none']) {
        expectStatus(await nobody.get(path), 401, 'Unauthorized');
      }
      expect((await nobody.get('/version')).body).toMatchObject({
        major: '0',
        gitVersion: expect.stringMatching(/^v/),
      });
    });

    test('nothing in it depends on who asks', async () => {
      for (const path of ['/apis', '/apis/plumbline.dev/v1', '/api/v1']) {
        const { text } = await world.viewer.get(path);
        expect(text).toBe((await world.admin.get(path)).text);
        expect(text).not.toContain(world.tenant);
      }
    });
  });
}
