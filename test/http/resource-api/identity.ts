import { describe, expect, test } from 'vitest';

import { type Answer, clientOf, clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function identity(open: OpenTarget): void {
  const world = useWorld(open);

  describe('without a good token', () => {
    test('everything below /apis is 401 before anything else, also what does not exist', async () => {
      for (const [authorization, words] of [
        [undefined, 'a token is needed'],
        ['Basic YWRtaW46YWRtaW4=', 'not of the form'],
        ['Bearer nonsense', 'malformed'],
      ] as const) {
        const nobody = clientWith(world.target.baseUrl, authorization);
        for (const [method, path] of [
          ['GET', world.widgets],
          ['POST', world.widgets],
          ['PATCH', world.widget('x')],
          ['GET', '/apis/no.such.group/v1/things'],
          ['GET', '/apis'],
          ['PURGE', world.widgets],
        ] as const) {
          const answer = await nobody.send(method, path, method === 'GET' ? undefined : '{nonsense');
          expectStatus(answer, 401, 'Unauthorized', words);
          expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer realm="plumbline"/);
        }
      }
    });

    test('a token for the other audience is refused', async () => {
      const audience = world.target.audience === 'public' ? 'private' : 'public';
      const client = await clientOf(world.target, { roles: ['admin'], tenants: '*', audience });
      expectStatus(await client.get(TENANTS), 401, 'Unauthorized', 'audience');
    });

    test('a token whose claims were changed is refused', async () => {
      const token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
      const [header, payload = '', signature] = token.split('.');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
      const forged = Buffer.from(JSON.stringify({ ...claims, roles: ['admin'], tenants: '*' })).toString('base64url');
      const client = clientWith(world.target.baseUrl, `Bearer ${header}.${forged}.${signature}`);
      expectStatus(await client.get(TENANTS), 401, 'Unauthorized');
    });
  });

  describe('who am I', () => {
    const WHO_AM_I = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

    test('is told to everybody who has a token, as kubectl asks it', async () => {
      const { audience } = world.target;
      const nobody = await clientOf(world.target, { roles: [], tenants: [], subject: 'ann' });
      const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: {}, spec: {} };
      const answer = await nobody.post(WHO_AM_I, review);
      expect([answer.status, answer.body]).toMatchObject([
        201,
        { kind: 'SelfSubjectReview', status: { userInfo: { username: 'ann', groups: [] } } },
      ]);
      expect(answer.body.status.userInfo.extra).toMatchObject({
        'plumbline.dev/audience': [audience],
        'plumbline.dev/tenants': [],
        'plumbline.dev/expires': [expect.stringMatching(/^\d{4}-.*Z$/)],
      });
      const { body } = await world.admin.post(WHO_AM_I, review);
      expect(body.status.userInfo).toMatchObject({ groups: ['admin'], extra: { 'plumbline.dev/tenants': ['*'] } });
    });

    test('is answered in JSON to clients that send protobuf, and to those that send nothing', async () => {
      const protobuf = { 'Content-Type': 'application/vnd.kubernetes.protobuf' };
      const answer = await world.viewer.send('POST', WHO_AM_I, new Uint8Array([0x6b, 0x38, 0x73, 0x00]), protobuf);
      expect([answer.status, answer.headers.get('Content-Type')]).toEqual([201, 'application/json']);
      expect((await world.viewer.send('POST', WHO_AM_I)).body.status.userInfo.groups).toEqual(['viewer']);
    });

    test('is told to nobody else', async () => {
      const nobody = clientWith(world.target.baseUrl, undefined);
      expectStatus(await nobody.post(WHO_AM_I, {}), 401, 'Unauthorized');
      expectStatus(await world.viewer.get(WHO_AM_I), 405, 'MethodNotAllowed');
    });
  });

  describe('roles', () => {
    test('a viewer reads and writes nothing', async () => {
      const object = await createWidget(world);
      const path = world.widget(object.metadata.name);
      expect((await world.viewer.get(path)).status).toBe(200);
      for (const answer of [
        await world.viewer.post(world.widgets, { metadata: { name: uniqueName('w') } }),
        await world.viewer.put(path, object),
        await world.viewer.patch(path, {}),
        await world.viewer.delete(path),
      ]) {
        expectStatus(answer, 403, 'Forbidden', /may not .* widgets\.example\.dev/);
      }
      expect((await world.viewer.get(path)).body).toEqual(object);
    });

    test('who lists a cluster-scoped kind with a token of some tenants is told which tokens read it', async () => {
      const answer = await world.editor.get('/apis/example.dev/v1/planets');
      expectStatus(answer, 403, 'Forbidden', 'they are read with tokens of all tenants');
    });

    test('a controller writes finalizers, labels and annotations, and leaves the spec alone', async () => {
      const object = await createWidget(world, { finalizers: ['example.dev/a'] }, { size: 1 });
      const path = world.widget(object.metadata.name);
      expectStatus(
        await world.controller.post(world.widgets, { metadata: { name: uniqueName('w') } }),
        403,
        'Forbidden',
      );
      expectStatus(
        await world.controller.put(path, { ...object, spec: { size: 2 } }),
        403,
        'Forbidden',
        'change the spec',
      );
      expectStatus(await world.controller.patch(path, { spec: { size: 2 } }), 403, 'Forbidden', 'change the spec');
      const annotated = await world.controller.patch(path, {
        metadata: { annotations: { seen: '1' } },
        spec: { size: 1 },
      });
      expect(annotated.status).toBe(200);
      await world.editor.delete(path);
      const { body } = await world.controller.get(path);
      const released = await world.controller.put(path, { ...body, metadata: { ...body.metadata, finalizers: [] } });
      expect(released.status).toBe(200);
      expectStatus(await world.controller.get(path), 404, 'NotFound');
      expectStatus(await world.controller.delete(world.widget(uniqueName('w'))), 403, 'Forbidden');
    });

    test('a token without a role sees that there is something, and may do nothing', async () => {
      const client = await clientOf(world.target, { roles: [], tenants: [world.tenant] });
      expectStatus(await client.get(world.widgets), 403, 'Forbidden', 'roles: none');
    });

    test('a foreign object and one that nobody has are answered alike, but for their names', async () => {
      const { metadata } = await createWidget(world, { name: uniqueName('w') });
      const [other, missing] = [uniqueName('t'), uniqueName('t')];
      await world.admin.post(TENANTS, { metadata: { name: other } });
      const stranger = await clientOf(world.target, { roles: ['admin', 'controller'], tenants: [other] });
      const [widget, none] = [metadata.name, uniqueName('w')];
      for (const [foreign, absent] of [
        [world.widgets, world.widgets.replace(world.tenant, missing)],
        [world.widget(widget), world.widget(none).replace(world.tenant, missing)],
        [`${world.widget(widget)}/status`, `${world.widget(none).replace(world.tenant, missing)}/status`],
        [`${TENANTS}/${world.tenant}`, `${TENANTS}/${missing}`],
        [`/api/v1/namespaces/${world.tenant}/events`, `/api/v1/namespaces/${missing}/events`],
        [`/watch/v1/events?tenants=${world.tenant}`, `/watch/v1/events?tenants=${missing}`],
      ] as const) {
        for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']) {
          const body = ['PUT', 'PATCH', 'POST'].includes(method) ? { metadata: { name: widget } } : undefined;
          const [seen, unseen] = [
            await stranger.send(method, foreign, body),
            await stranger.send(method, absent, body && { metadata: { name: none } }),
          ];
          const shown = `${method} ${foreign}`;
          expect(bareOf(seen, world.tenant, widget), shown).toEqual(bareOf(unseen, missing, none));
          if (method === 'GET') expect(seen.status, shown).toBe(404);
        }
      }
    });

    test('an editor of another tenant finds nothing here', async () => {
      const { metadata } = await createWidget(world);
      const other = uniqueName('t');
      await world.admin.post(TENANTS, { metadata: { name: other } });
      const stranger = await clientOf(world.target, { roles: ['editor'], tenants: [other] });
      const path = world.widget(metadata.name);
      for (const answer of [
        await stranger.get(world.widgets),
        await stranger.get(path),
        await stranger.put(path, { metadata }),
        await stranger.patch(path, {}),
        await stranger.delete(path),
        await stranger.post(world.widgets, { metadata: { name: uniqueName('w') } }),
      ]) {
        expectStatus(answer, 404, 'NotFound');
      }
      const all = await stranger.get(`/apis/example.dev/v1/widgets?fieldSelector=metadata.name%3D${metadata.name}`);
      expect(all.body.items).toEqual([]);
    });
  });
}

/** An answer without what differs each time, and without these names. */
function bareOf({ status, headers, text }: Answer, ...names: readonly string[]): unknown {
  const kept = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  const bare = names.reduce((rest, name) => rest.replaceAll(name, '…'), text);
  return { status, headers: kept, text: bare };
}
