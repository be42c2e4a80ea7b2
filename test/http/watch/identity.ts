import { expect, test } from 'vitest';

import { clientOf, clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, expectFailure, passMark, useWatches, viewerOf } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

/** Tokens are good for a minute longer than they say, for clocks that differ. */
const CLOCK_SKEW_SECONDS = 60;

export function identity(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  test('without a good token it is 401, whatever else is wrong', async () => {
    for (const authorization of [undefined, 'Basic YWRtaW46YWRtaW4=', 'Bearer nonsense']) {
      const nobody = clientWith(world.target.baseUrl, authorization);
      for (const [method, path] of [
        ['GET', EVENTS],
        ['GET', `${EVENTS}?nonsense=1`],
        ['POST', EVENTS],
        ['GET', '/watch/nonsense'],
      ] as const) {
        const answer = await nobody.send(method, path);
        expectStatus(answer, 401, 'Unauthorized');
        expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer realm="plumbline"/);
      }
    }
  });

  test('a token that has expired is 401', async () => {
    const grant = { ...viewerOf(world), ttlSeconds: -CLOCK_SKEW_SECONDS - 1 };
    const client = await clientOf(world.target, grant);
    expectStatus(await client.get(EVENTS), 401, 'Unauthorized', 'expired');
  });

  test('a token that expires ends its stream with ERROR 401, and the stream can be resumed with another', async () => {
    const grant = { ...viewerOf(world), ttlSeconds: 2 - CLOCK_SKEW_SECONDS };
    const client = await watches.open({}, { grant });
    await passMark(world, client);
    const { data, id } = await client.waitFor(({ event }) => event === 'ERROR');
    expectFailure(data, 401, 'Unauthorized', 'expired');
    // No id: the one before stays with the client.
    expect(id).toBeUndefined();
    expect(await client.ended).toBeUndefined();
    const widget = await createWidget(world);
    const again = await watches.open({}, { lastEventId: client.lastEventId });
    expect((await again.next()).data.uid).toBe(widget.metadata.uid);
  });

  test('a token without a role may not watch', async () => {
    const { status, body } = await watches.refused({}, { grant: { roles: [], tenants: [world.tenant] } });
    expect(status).toBe(403);
    expectFailure(body, 403, 'Forbidden');
  });

  test.each(['viewer', 'editor', 'controller', 'admin'] as const)('a %s may watch', async (role) => {
    const client = await watches.open({}, { grant: { roles: [role], tenants: [world.tenant] } });
    await passMark(world, client);
  });

  test('a refusal comes before a stream: nothing of it is in the log of events', async () => {
    const { headers, body } = await watches.refused({ tenants: uniqueName('t') });
    expect(headers.get('content-type')).toContain('application/json');
    expect(body.message).not.toContain('at ');
  });
}
