import { beforeAll, describe, expect, test } from 'vitest';

import type { Audience } from '#core/identity.ts';
import { clientOf } from '#test/http/client.ts';
import { createWidget, expectStatus, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, EVERYONE, expectFailure, passMark, readyOf, useWatches, viewerOf } from '#test/http/watch/world.ts';
import type { OpenDeployment } from '#test/http/target.ts';

/** The listener for users and the one for controllers: the same watch, tokens and cursors of their own. */
export function audiences(open: OpenDeployment): void {
  const world = useWorld(async () => (await open()).targets.public);
  const inside = useWorld(async () => (await open()).targets.private);
  const watches = { public: useWatches(world), private: useWatches(inside) };

  test.each([
    ['public', 'private'],
    ['private', 'public'],
  ] as const)('the %s listener refuses tokens for the %s one', async (listener, other) => {
    const target = (await open()).targets[listener];
    for (const roles of [['controller'], ['viewer'], ['admin']] as const) {
      const client = await clientOf(target, { roles, tenants: '*', audience: other });
      expectStatus(
        await client.get(EVENTS),
        401,
        'Unauthorized',
        `this listener takes tokens for "plumbline/${listener}"`,
      );
    }
  });

  test('a controller watches all tenants on the private listener, and sees what users write on the public one', async () => {
    const grant = { roles: ['controller'], tenants: '*' } as const;
    const client = await watches.private.open({}, { grant });
    expect(readyOf(client).data.tenants).toBe('*');
    const { metadata } = await createWidget(world);
    expect((await client.waitFor(({ data }) => data.uid === metadata.uid)).event).toBe('ADDED');
    const status = { ready: true };
    const answer = await inside.admin.patch(`${world.widget(metadata.name)}/status`, { status });
    expect(answer.status, answer.text).toBe(200);
    const { data } = await client.waitFor(({ event, data: { uid } }) => event === 'MODIFIED' && uid === metadata.uid);
    expect(data.data.status).toEqual(status);
  });

  describe('cursors', () => {
    const cursors = {} as Record<Audience, { readonly named: string; readonly all: string }>;

    beforeAll(async () => {
      for (const [audience, { admin }] of [
        ['public', world],
        ['private', inside],
      ] as const) {
        const named = (await admin.get(world.widgets)).body.metadata.cursor;
        cursors[audience] = { named, all: (await admin.get('/apis/example.dev/v1/widgets')).body.metadata.cursor };
      }
    });

    test.each([
      ['public', 'private'],
      ['private', 'public'],
    ] as const)('of the %s listener are malformed on the %s one, for the same tenants', async (from, to) => {
      const { named, all } = cursors[from];
      for (const [cursor, query, grant] of [
        [named, { tenants: world.tenant }, viewerOf(world)],
        [all, {}, EVERYONE],
      ] as const) {
        const { status, body } = await watches[to].refused({ ...query, from: cursor }, { grant });
        expect(status).toBe(400);
        expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
        const { data } = await watches[to].refusedInStream(query, { grant, lastEventId: cursor });
        expectFailure(data, 400, 'BadRequest');
        const accepted = await watches[from].open({ ...query, from: cursor }, { grant });
        await passMark(world, accepted);
      }
    });
  });
}
