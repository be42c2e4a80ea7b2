import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';

import { clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function headers(open: OpenTarget): void {
  const world = useWorld(open);

  describe('conditional reads', () => {
    test('an object has an ETag: its resourceVersion, the same at its status and for HEAD', async () => {
      const { metadata } = await createWidget(world);
      const path = world.widget(metadata.name);
      for (const answer of [
        await world.viewer.get(path),
        await world.viewer.get(`${path}/status`),
        await world.viewer.send('HEAD', path),
      ]) {
        expect(answer.headers.get('ETag')).toBe(`"${metadata.resourceVersion}"`);
        expect(answer.headers.get('Cache-Control')).toBe('no-cache, private');
      }
    });

    test('who has the object is told so, in any form of the header, until it changes', async () => {
      const { metadata } = await createWidget(world);
      const path = world.widget(metadata.name);
      const tag = `"${metadata.resourceVersion}"`;
      for (const sent of [tag, `W/${tag}`, `"1", ${tag}`, '*']) {
        const answer = await world.viewer.send('GET', path, undefined, { 'If-None-Match': sent });
        expect([answer.status, answer.text, answer.headers.get('ETag')]).toEqual([304, '', tag]);
        expect(answer.headers.get('Content-Type')).toBeNull();
      }
      await world.editor.patch(path, { spec: { size: 2 } });
      const changed = await world.viewer.send('GET', path, undefined, { 'If-None-Match': tag });
      expect([changed.status, changed.body.spec]).toEqual([200, { size: 2 }]);
    });

    test('nobody learns of an object by its tag: who may not see it gets the answer of a missing one', async () => {
      const { metadata } = await createWidget(world);
      const sent = { 'If-None-Match': '*' };
      const nobody = clientWith(world.target.baseUrl, undefined);
      expectStatus(await nobody.send('GET', world.widget(metadata.name), undefined, sent), 401, 'Unauthorized');
      expectStatus(
        await world.viewer.send('GET', world.widget(uniqueName('w')), undefined, sent),
        404,
        'NotFound',
        'widgets.example.dev',
      );
      await world.editor.delete(world.widget(metadata.name));
      expectStatus(await world.viewer.send('GET', world.widget(metadata.name), undefined, sent), 404, 'NotFound');
    });

    test('lists, writes and errors are kept by no cache', async () => {
      const name = uniqueName('w');
      for (const answer of [
        await world.editor.post(world.widgets, { metadata: { name } }),
        await world.editor.patch(world.widget(name), { spec: { size: 1 } }),
        await world.editor.get(world.widgets),
        await world.editor.get(world.widget(uniqueName('w'))),
        await world.editor.get('/nothing'),
        await clientWith(world.target.baseUrl, undefined).get(world.widgets),
        await world.editor.delete(world.widget(name)),
      ]) {
        expect(answer.headers.get('Cache-Control')).toBe('no-store');
        expect(answer.headers.get('ETag')).toBeNull();
      }
    });
  });

  describe('compression', () => {
    const LARGE = 'x'.repeat(2_000);
    let token: string;

    beforeAll(async () => {
      token = await world.target.token({ roles: ['viewer'], tenants: [world.tenant] });
      for (let n = 0; n < 80; n++) await createWidget(world, { annotations: { text: LARGE } });
    });

    /** As it lies on the wire: fetch would have undone it. */
    async function raw(
      path: string,
      acceptEncoding: string | undefined,
      method = 'GET',
    ): Promise<{ code: number | undefined; headers: Record<string, string | string[] | undefined>; body: Buffer }> {
      const sent = request(world.target.baseUrl + path, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(acceptEncoding !== undefined && { 'Accept-Encoding': acceptEncoding }),
        },
      });
      sent.end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      return { code: answer.statusCode, headers: answer.headers, body: await buffer(answer) };
    }

    test('a large list is compressed for who asks, and is the same list', async () => {
      const plain = await raw(world.widgets, undefined);
      expect(plain.headers).not.toHaveProperty('content-encoding');
      const packed = await raw(world.widgets, 'br, gzip;q=0.8');
      expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
      expect(packed.body.byteLength).toBeLessThan(plain.body.byteLength / 4);
      const [unpacked, expected] = [gunzipSync(packed.body), plain.body].map((bytes) => JSON.parse(bytes.toString()));
      expect(unpacked.items).toEqual(expected.items);
    });

    test.for([undefined, 'identity', 'br', 'gzip;q=0', 'deflate', 'gzip;q=0.5, identity;q=1'])(
      'for %j it is not',
      async (accept) => {
        const { code, headers } = await raw(world.widgets, accept);
        expect(code).toBe(200);
        expect(headers).not.toHaveProperty('content-encoding');
        expect(headers).toMatchObject({ vary: 'Accept-Encoding' });
      },
    );

    test('small answers, objects, errors and HEAD are left as they are', async () => {
      for (const [path, method] of [
        [`${world.widgets}?limit=1`, 'GET'],
        [`${world.widgets}?limit=none`, 'GET'],
        [world.widget('none'), 'GET'],
        [world.widgets, 'HEAD'],
      ] as const) {
        expect((await raw(path, 'gzip', method)).headers, path).not.toHaveProperty('content-encoding');
      }
    });

    test('an event stream is never compressed', async () => {
      const abort = new AbortController();
      const answer = await fetch(`${world.target.baseUrl}/watch/v1/events?tenants=${world.tenant}`, {
        headers: { Authorization: `Bearer ${token}`, 'Accept-Encoding': 'gzip' },
        signal: abort.signal,
      });
      expect([answer.status, answer.headers.get('Content-Encoding')]).toEqual([200, null]);
      abort.abort();
    });
  });

  test('OPTIONS tells the verbs of a path, to those who have a token', async () => {
    for (const [path, allowed] of [
      [world.widgets, 'GET, HEAD, POST'],
      [world.widget('x'), 'GET, HEAD, PUT, PATCH, DELETE'],
      ['/apis', 'GET, HEAD'],
    ] as const) {
      const answer = await world.viewer.send('OPTIONS', path);
      expect([answer.status, answer.text, answer.headers.get('Allow')]).toEqual([204, '', allowed]);
      expectStatus(await clientWith(world.target.baseUrl, undefined).send('OPTIONS', path), 401, 'Unauthorized');
    }
    expectStatus(await world.viewer.send('OPTIONS', '/nothing'), 404, 'NotFound');
  });
}
