import { beforeAll, describe, expect, test } from 'vitest';

import { clientOf, clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import {
  createTenant,
  EVENTS,
  EVERYONE,
  expectFailure,
  passMark,
  readyOf,
  useWatches,
  viewerOf,
} from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

/** Tokens are good for a minute longer than they say, for clocks that differ. */
const CLOCK_SKEW_SECONDS = 60;

export function refusals(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  describe('a cursor', () => {
    let cursor: string;

    beforeAll(async () => {
      const { body } = await world.viewer.get(world.widgets);
      ({ cursor } = body.metadata);
    });

    function replaced(position: number): string {
      return `${cursor.slice(0, position)}${cursor[position] === 'A' ? 'B' : 'A'}${cursor.slice(position + 1)}`;
    }

    test('that is not the one that was given is malformed, wherever it differs', async () => {
      const forged = [
        'nonsense',
        'AAAA',
        '0',
        '-1',
        cursor.slice(1),
        cursor.slice(0, -1),
        cursor.slice(0, -4),
        cursor.slice(0, 20),
        `${cursor}A`,
        `${cursor}=`,
        ` ${cursor}`,
        cursor + cursor,
        'A'.repeat(4096),
        'A'.repeat(5000),
        Buffer.from('{"seq":0}').toString('base64url'),
        ...Array.from({ length: cursor.length }, (_, position) => replaced(position)),
      ];
      for (const from of forged) {
        const { status, body } = await watches.refused({ from });
        expect(status, from).toBe(400);
        expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
      }
    });

    test('of other tenants is malformed too: it tells nobody anything', async () => {
      const { name, widgets } = await createTenant(world);
      const wider = (await world.admin.get('/apis/example.dev/v1/widgets')).body.metadata.cursor;
      const foreign = (await world.admin.get(widgets)).body.metadata.cursor;
      for (const [from, query, grant] of [
        [foreign, {}, viewerOf(world)],
        [wider, {}, viewerOf(world)],
        [cursor, { tenants: name }, EVERYONE],
        [cursor, {}, EVERYONE],
        [cursor, { tenants: `${world.tenant},${name}` }, EVERYONE],
        [wider, { tenants: world.tenant }, EVERYONE],
      ] as const) {
        const { status, body } = await watches.refused({ ...query, from }, { grant });
        expect(status).toBe(400);
        expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
      }
      expect(readyOf(await watches.open({ tenants: world.tenant, from: cursor }, { grant: EVERYONE }))).toBeDefined();
    });

    test('that came by Last-Event-ID is refused in the stream, with an empty id, and the stream ends', async () => {
      for (const lastEventId of ['nonsense', cursor.slice(0, -1), replaced(10), 'A'.repeat(5000)]) {
        const { data } = await watches.refusedInStream({}, { lastEventId });
        expectFailure(data, 400, 'BadRequest', 'cursor is malformed');
      }
    });

    test('given as a continue token, or the reverse, is malformed', async () => {
      await createWidget(world);
      await createWidget(world);
      const { metadata } = (await world.viewer.get(`${world.widgets}?limit=1`)).body;
      expectFailure((await watches.refused({ from: metadata.continue })).body, 400, 'BadRequest');
      const answer = await world.viewer.get(`${world.widgets}?continue=${encodeURIComponent(cursor)}`);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    });
  });

  describe('parameters', () => {
    test.each([
      { tenant: 'x' },
      { Tenants: 'x' },
      { kind: 'Widget' },
      { resourceVersion: '0' },
      { watch: 'true' },
      { filter: 'true' },
      { 'a"b\u0000': '1' },
    ])('an unknown one is refused, so that a misspelt one does not become a watch of everything: %j', async (query) => {
      const { status, body } = await watches.refused(query);
      expect(status).toBe(400);
      expectFailure(body, 400, 'BadRequest', /is not known; known are tenants, kinds, labelSelector, from, initial/);
    });

    test.each(['tenants', 'kinds', 'labelSelector', 'from', 'initial'])('%s given twice is refused', async (name) => {
      const answer = await world.viewer.get(`${EVENTS}?${name}=a&${name}=a`);
      expectStatus(answer, 400, 'BadRequest', `"${name}" is given 2 times`);
    });

    test.each(['yes', '1', 'TRUE', 'true '])('initial=%s is refused', async (value) => {
      expectFailure((await watches.refused({ initial: value })).body, 400, 'BadRequest', '"true" or "false"');
    });
  });

  describe('methods', () => {
    test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is 405, and says what there is', async (method) => {
      const answer = await world.viewer.send(method, EVENTS);
      expectStatus(answer, 405, 'MethodNotAllowed');
      expect(answer.headers.get('Allow')).toBe('GET');
    });

    test('HEAD is 405: there is no such thing as the headers of a stream that is not opened', async () => {
      const answer = await world.viewer.send('HEAD', EVENTS);
      expect([answer.status, answer.text, answer.headers.get('Allow')]).toEqual([405, '', 'GET']);
    });

    test.each(['/watch', '/watch/v1', '/watch/v1/events/', '/watch/v1/event', '/watch/v2/events', '/watch/v1/acks'])(
      'there is nothing at %s',
      async (path) => {
        expectStatus(await world.viewer.get(path), 404, 'NotFound', 'there is nothing at');
      },
    );
  });

  describe('Accept', () => {
    test.each(['application/json', 'text/plain', 'image/*', 'text/event-streams', 'text/event-stream;q=0'])(
      '%s is 406: a watch is an event stream',
      async (accept) => {
        const { status, body } = await watches.refused({}, { headers: { Accept: accept } });
        expect(status).toBe(406);
        expectFailure(body, 406, 'NotAcceptable', 'text/event-stream');
      },
    );

    test.each(['text/event-stream', '*/*', 'text/*', 'text/html, text/event-stream;q=0.5', 'TEXT/EVENT-STREAM', ''])(
      '%j is served',
      async (accept) => {
        expect(readyOf(await watches.open({}, { headers: { Accept: accept } }))).toBeDefined();
      },
    );
  });

  describe('identity', () => {
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
          expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer');
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
  });
}
