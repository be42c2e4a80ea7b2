import { describe, expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function requests(open: OpenTarget): void {
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
        '/apis/example.org',
        '/apis/example.org/v1',
        '/apis/example.dev/v2',
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

  test('a deletion with an unknown propagation policy is 400', async () => {
    const { metadata } = await createWidget(world);
    const answer = await world.editor.delete(`${world.widget(metadata.name)}?propagationPolicy=Sideways`);
    expectStatus(answer, 400, 'BadRequest', 'propagationPolicy');
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
