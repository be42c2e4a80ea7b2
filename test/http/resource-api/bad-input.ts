import { request } from 'node:http';
import { describe, expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const MIB = 1024 * 1024;

export function badInput(open: OpenTarget): void {
  const world = useWorld(open);

  describe('routes', () => {
    test('the root says what this is, without a token', async () => {
      const response = await fetch(`${world.target.baseUrl}/`);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({
        name: 'plumbline',
        version: expect.any(String),
        links: expect.any(Object),
      });
    });

    test('unknown paths, groups, versions and kinds are 404', async () => {
      for (const path of [
        '/nothing',
        '/apis',
        '/apis/example.dev',
        '/apis/example.dev/v1/things',
        '/apis/example.dev/v2/widgets',
        '/apis/example.org/v1/widgets',
        `/apis/example.dev/v1/namespaces/${world.tenant}`,
        `${world.widgets}/x/scale`,
        `${world.widgets}/`,
        `${world.widgets}/x/status/y`,
        '/apis/example.dev/v1/__proto__',
        '/apis/example.dev/v1/constructor/prototype',
      ]) {
        expectStatus(await world.admin.get(path), 404, 'NotFound');
      }
    });

    test('a known path with another verb is 405 with the verbs that there are', async () => {
      const cases = [
        ['DELETE', world.widgets, 'GET, HEAD, POST'],
        ['PUT', world.widgets, 'GET, HEAD, POST'],
        ['POST', world.widget('x'), 'GET, HEAD, PUT, PATCH, DELETE'],
        ['DELETE', `${world.widget('x')}/status`, 'GET, HEAD, PUT, PATCH'],
        ['OPTIONS', world.widgets, 'GET, HEAD, POST'],
        ['POST', '/', 'GET, HEAD'],
      ] as const;
      for (const [method, path, allowed] of cases) {
        const answer = await world.admin.send(method, path);
        expectStatus(answer, 405, 'MethodNotAllowed');
        expect(answer.headers.get('Allow')).toBe(allowed);
      }
    });

    test('HEAD answers like GET, without a body', async () => {
      const { metadata } = await createWidget(world);
      const there = await world.viewer.send('HEAD', world.widget(metadata.name));
      expect([there.status, there.text]).toEqual([200, '']);
      expect((await world.viewer.send('HEAD', world.widget(uniqueName('w')))).status).toBe(404);
    });

    test.for(['%00', 'a%2Fb', 'Upper', '%F0%9F%92%A9', 'x'.repeat(254), '%zz', 'a_b', '-a', "a'--"])(
      'an object named "%s" does not exist',
      async (name) => {
        for (const path of [
          world.widget(name),
          `${world.widget(name)}/status`,
          `/apis/example.dev/v1/namespaces/${name}/widgets`,
        ]) {
          expectStatus(await world.admin.get(path), 404, 'NotFound');
        }
        expectStatus(await world.admin.delete(world.widget(name)), 404, 'NotFound');
      },
    );
  });

  describe('names', () => {
    test.for(['Upper', 'under_score', 'a/b', '-a', 'a-', 'a..b', '.a', 'ü', 'x'.repeat(254), 'a b', 'a\n'])(
      '%j cannot be created',
      async (name) => {
        const answer = await world.editor.post(world.widgets, { metadata: { name } });
        expectStatus(answer, 422, 'Invalid', 'DNS subdomain');
        expect(fieldsOf(answer)).toEqual(['metadata.name']);
      },
    );

    test.for(['a', '0', 'a.b-c.d', `${'x'.repeat(126)}.${'y'.repeat(126)}`])('%j can', async (name) => {
      expect((await world.editor.post(world.widgets, { metadata: { name } })).status).toBe(201);
      expect((await world.editor.get(world.widget(name))).status).toBe(200);
    });
  });

  describe('bodies', () => {
    test('that name something else than the URL are 400', async () => {
      const { metadata } = await createWidget(world);
      const right = { apiVersion: 'example.dev/v1', kind: 'Widget', metadata };
      for (const [wrong, words] of [
        [{ ...right, apiVersion: 'example.dev/v2' }, 'apiVersion'],
        [{ ...right, kind: 'Vault' }, 'kind'],
        [{ ...right, metadata: { ...metadata, name: 'other' } }, 'metadata.name'],
        [{ ...right, metadata: { ...metadata, namespace: 'other' } }, 'metadata.namespace'],
      ] as const) {
        expectStatus(await world.editor.put(world.widget(metadata.name), wrong), 400, 'BadRequest', words);
      }
      expectStatus(
        await world.editor.post(world.widgets, { metadata: { name: 'x', namespace: 'other' } }),
        400,
        'BadRequest',
      );
    });

    const inSpec = (text: string): string => `{"metadata":{"name":"x"},"spec":${text}}`;
    test.for([
      ['no bytes', '', 'the body is empty'],
      ['half an object', '{', 'position 1'],
      ['an object with a comma too many', '{"metadata":{"name":"x"},}', 'position 25'],
      ['a list', '[]', 'must be a JSON object'],
      ['a text', '"text"', 'must be a JSON object'],
      ['null', 'null', 'must be a JSON object'],
      ['a key twice', '{"metadata":{"name":"x","name":"y"}}', 'twice'],
      ['NUL in a text', inSpec('{"a":"\\u0000"}'), 'NUL'],
      ['NUL in a key', inSpec('{"a\\u0000":1}'), 'NUL'],
      ['half a surrogate pair', inSpec('{"a":"\\ud800"}'), 'surrogate'],
      ['an inexact integer', inSpec('{"a":9007199254740993}'), 'spec.a'],
      ['a number beyond all', inSpec('{"a":1e999}'), 'spec.a'],
      ['a number close to none', inSpec('{"a":1e-300}'), 'spec.a'],
      ['__proto__', inSpec('{"__proto__":{"size":1}}'), '__proto__'],
      ['a label "constructor"', '{"metadata":{"name":"x","labels":{"constructor":"x"}}}', 'constructor'],
      ['prototype', inSpec('{"prototype":1}'), 'prototype'],
      ['65 levels', inSpec('['.repeat(65) + ']'.repeat(65)), 'nested deeper'],
      ['100,000 objects in each other', '{"a":'.repeat(100_000), 'nested deeper'],
      ['a million brackets', '['.repeat(1_000_000), 'nested deeper'],
    ] as const)('of %s are 400', async ([, body, words]) => {
      for (const answer of [
        await world.editor.post(world.widgets, body),
        await world.editor.put(world.widget('x'), body),
        await world.editor.patch(world.widget('x'), body),
      ]) {
        expectStatus(answer, 400, 'BadRequest', words);
      }
    });

    test('that are not UTF-8 are 400', async () => {
      expectStatus(
        await world.editor.post(world.widgets, new Uint8Array([0x7b, 0xff, 0x7d])),
        400,
        'BadRequest',
        'UTF-8',
      );
    });

    test.for([
      ['POST', 'text/plain'],
      ['POST', 'application/merge-patch+json'],
      ['POST', 'application/x-www-form-urlencoded'],
      ['POST', 'application/json; charset=utf-16'],
      ['PUT', 'application/yaml'],
      ['PATCH', 'application/json'],
      ['PATCH', 'application/strategic-merge-patch+json'],
      ['PATCH', 'application/apply-patch+yaml'],
      ['DELETE', 'text/plain'],
    ] as const)('%s of type %s are 415', async ([method, type]) => {
      const path = method === 'POST' ? world.widgets : world.widget('x');
      const answer = await world.editor.send(method, path, '{}', { 'Content-Type': type });
      expectStatus(answer, 415, 'UnsupportedMediaType', 'accepted here: ');
    });

    test('that are compressed are 415', async () => {
      const answer = await world.editor.send('POST', world.widgets, '{}', { 'Content-Encoding': 'gzip' });
      expectStatus(answer, 415, 'UnsupportedMediaType', 'Content-Encoding');
    });

    test('above 1 MiB are 413, and the connection can still be used', async () => {
      const body = JSON.stringify({ metadata: { name: 'x' }, spec: { a: 'x'.repeat(MIB) } });
      expectStatus(await world.editor.post(world.widgets, body), 413, 'RequestEntityTooLarge');
      expectStatus(await world.editor.patch(world.widget('x'), body), 413, 'RequestEntityTooLarge');
      expect((await world.editor.get(world.widgets)).status).toBe(200);
    });

    test('of just under 1 MiB are taken', async () => {
      const name = uniqueName('w');
      const answer = await world.editor.post(world.widgets, { metadata: { name }, spec: { a: 'x'.repeat(MIB - 200) } });
      expect(answer.status).toBe(201);
      expectStatus(
        await world.editor.patch(world.widget(name), { spec: { b: 'x'.repeat(MIB / 2) } }),
        413,
        'RequestEntityTooLarge',
      );
      expect((await world.editor.delete(world.widget(name))).status).toBe(200);
    });

    test('without a length and without an end are refused after 1 MiB', async () => {
      const token = await world.target.token({ roles: ['editor'], tenants: [world.tenant] });
      const { status, sentBytes } = await sendEndlessly(world.target.baseUrl + world.widgets, token);
      expect(status).toBe(413);
      expect(sentBytes).toBeLessThan(64 * MIB);
    });

    test('that break the schema or the rules of metadata are 422 with a cause for each field', async () => {
      const answer = await world.editor.post(world.widgets, {
        metadata: {
          name: 'x',
          labels: { 'bad key': 'x', ok: 'not ok!', number: 1 },
          annotations: { '/': 'x' },
          finalizers: ['not ok'],
          ownerReferences: [{ apiVersion: 'v1' }],
          resourceVersion: 'abc',
          colour: 'red',
        },
        data: {},
      });
      expectStatus(answer, 422, 'Invalid');
      expect(fieldsOf(answer).toSorted()).toEqual(
        [
          'data',
          'metadata.annotations["/"]',
          'metadata.colour',
          'metadata.finalizers[0]',
          'metadata.labels["bad key"]',
          'metadata.labels.number',
          'metadata.labels.ok',
          'metadata.ownerReferences[0].kind',
          'metadata.ownerReferences[0].name',
          'metadata.ownerReferences[0].uid',
          'metadata.resourceVersion',
        ].toSorted(),
      );
      const spec = await world.editor.post(world.widgets, { metadata: { name: 'x' }, spec: { size: 'big' } });
      expect(spec.body.details.causes).toEqual([
        { reason: 'FieldValueTypeInvalid', message: expect.any(String), field: 'spec.size' },
      ]);
    });
  });

  test('a dry run is refused rather than run', async () => {
    const { metadata } = await createWidget(world);
    const name = uniqueName('w');
    const path = world.widget(metadata.name);
    for (const answer of [
      await world.editor.post(`${world.widgets}?dryRun=All`, { metadata: { name } }),
      await world.editor.delete(`${path}?dryRun=All`),
      await world.editor.delete(path, { dryRun: ['All'] }),
    ]) {
      expectStatus(answer, 400, 'BadRequest', 'dryRun');
    }
    expect((await world.editor.get(path)).status).toBe(200);
    expect((await world.editor.get(world.widget(name))).status).toBe(404);
    expectStatus(
      await world.editor.delete(`${path}?propagationPolicy=Sideways`),
      400,
      'BadRequest',
      'propagationPolicy',
    );
  });

  test('queries that Kubernetes clients always add are ignored', async () => {
    const query = 'fieldManager=kubectl&fieldValidation=Strict&pretty=false&dryRun=';
    const name = uniqueName('w');
    expect((await world.editor.post(`${world.widgets}?${query}`, { metadata: { name } })).status).toBe(201);
    expect((await world.editor.patch(`${world.widget(name)}?${query}`, { spec: { size: 1 } })).status).toBe(200);
    expect((await world.editor.delete(`${world.widget(name)}?${query}`)).status).toBe(200);
  });

  test('every answer has the id of its request', async () => {
    const given = await world.editor.send('GET', world.widgets, undefined, { 'X-Request-Id': 'abc-123' });
    expect(given.headers.get('X-Request-Id')).toBe('abc-123');
    const made = await world.editor.send('GET', '/nothing', undefined, { 'X-Request-Id': 'not sane' });
    expect(made.headers.get('X-Request-Id')).toMatch(/^[0-9a-f-]{36}$/);
  });
}

/** A chunked body that goes on until the server answers. */
function sendEndlessly(url: string, token: string): Promise<{ status: number; sentBytes: number }> {
  return new Promise((resolve, reject) => {
    const chunk = Buffer.alloc(64 * 1024, ' ');
    let sentBytes = 0;
    let isAnswered = false;
    const outgoing = request(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
    });
    outgoing.on('response', (response) => {
      isAnswered = true;
      resolve({ status: response.statusCode ?? 0, sentBytes });
      outgoing.destroy();
    });
    outgoing.on('error', (error) => {
      if (!isAnswered) reject(error);
    });
    outgoing.on('drain', send);
    send();
    function send(): void {
      while (!isAnswered) {
        sentBytes += chunk.length;
        if (!outgoing.write(chunk)) return;
      }
    }
  });
}
