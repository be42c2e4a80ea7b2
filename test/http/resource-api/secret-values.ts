import { beforeAll, describe, expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import { createWidget, expectStatus, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const SPEC = {
  tier: 'large',
  password: 'correct-horse-battery',
  users: [
    { name: 'ann', token: 'token-of-ann' },
    { name: 'bob', admin: true },
  ],
};

/** For those who must have them; the listener for users knows no such path. */
export function secretValues(open: OpenTarget): void {
  const world = useWorld(open);
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  let vault: any;
  let path: string;

  beforeAll(async () => {
    const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
    const created = await world.editor.post(vaults, { metadata: { name: uniqueName('v') }, spec: SPEC });
    path = `${vaults}/${created.body.metadata.name}`;
    vault = (await world.controller.patch(`${path}/status`, { status: { unsealKey: 'key', phase: 'Open' } })).body;
  });

  test('are given to admins and controllers, and nothing else with them, on the private listener alone', async () => {
    const admin = await clientOf(world.target, { roles: ['admin'], tenants: [world.tenant] });
    for (const client of [world.controller, admin, world.admin]) {
      const answer = await client.get(`${path}/secrets`);
      if (world.target.audience === 'public') {
        expectStatus(answer, 404, 'NotFound', 'there is nothing at');
        continue;
      }
      expect(answer.status, answer.text).toBe(200);
      expect(answer.headers.get('Cache-Control')).toBe('no-store');
      const { name, namespace, uid, resourceVersion } = vault.metadata;
      expect(answer.body).toEqual({
        apiVersion: 'example.dev/v1beta1',
        kind: 'VaultSecrets',
        metadata: { name, namespace, uid, resourceVersion },
        spec: { password: SPEC.password, users: [{ token: 'token-of-ann' }, {}] },
        status: { unsealKey: 'key' },
      });
    }
  });

  test('the path is no path for users, whatever the method and whoever asks', async () => {
    for (const [method, at] of [
      ['GET', `${path}/secrets`],
      ['PUT', `${path}/secrets`],
      ['GET', `${world.widget(uniqueName('w'))}/secrets`],
    ] as const) {
      const answer = await world.admin.send(method, at, method === 'PUT' ? {} : undefined);
      const unknown = await world.admin.send(method, `${at}-no`, method === 'PUT' ? {} : undefined);
      expectStatus(unknown, 404, 'NotFound');
      if (world.target.audience === 'public') expect(answer.text).toBe(unknown.text.replace('secrets-no', 'secrets'));
      else expect(answer.text).not.toBe(unknown.text.replace('secrets-no', 'secrets'));
    }
  });

  describe('for controllers', () => {
    const isPrivate = (): boolean => world.target.audience === 'private';

    test('are refused to viewers and editors, and in tenants that a token does not name', async () => {
      if (!isPrivate()) return;
      for (const client of [world.viewer, world.editor]) {
        expectStatus(await client.get(`${path}/secrets`), 403, 'Forbidden', 'may not read the secrets of vaults');
      }
      const stranger = await clientOf(world.target, { roles: ['admin', 'controller'], tenants: [uniqueName('t')] });
      expectStatus(await stranger.get(`${path}/secrets`), 404, 'NotFound');
      const shared = '/apis/example.dev/v1beta1/namespaces/shared/vaults';
      const { body } = await world.admin.post(shared, { metadata: { name: uniqueName('v') }, spec: SPEC });
      const common = `${shared}/${body.metadata.name}`;
      expect((await stranger.get(common)).status).toBe(200);
      expectStatus(await stranger.get(`${common}/secrets`), 403, 'Forbidden', 'a token must name it');
    });

    test('of a kind without any are 404, with the reason, and of an object that is not there too', async () => {
      if (!isPrivate()) return;
      const { metadata } = await createWidget(world);
      const answer = await world.controller.get(`${world.widget(metadata.name)}/secrets`);
      expectStatus(answer, 404, 'NotFound', 'widgets.example.dev have no secret fields');
      expectStatus(await world.controller.get(`${path}-no/secrets`), 404, 'NotFound', 'not found');
      expectStatus(await world.controller.send('DELETE', `${path}/secrets`), 405, 'MethodNotAllowed');
    });
  });
}
