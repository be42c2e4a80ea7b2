import { describe, expect, test } from 'vitest';
import { createHttpApp } from '#http/app.ts';
import { answerTagged } from '#http/conditional.ts';
import { originHeaders } from '#http/cors.ts';
import { methods } from '#http/methods.ts';
import { StatusError } from '#core/status-error.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const APP = 'https://app.example.dev';

function appFor(allowedOrigins: readonly string[]) {
  const app = createHttpApp({ logger: silentLogger, allowedOrigins });
  app.use('/*', async (c, next) => {
    if (c.req.header('authorization') === undefined) throw new StatusError('Unauthorized', 'a token is needed');
    await next();
  });
  app.get('/stream', (c) => c.json(originHeaders(c)));
  app.all('/thing', methods({ GET: (c) => answerTagged(c, '{}', '7'), PATCH: (c) => c.json({}) }));
  return app;
}

describe('a page of an origin that is allowed', () => {
  const app = appFor([APP]);

  test('is told by a preflight, without a token, that it may send one', async () => {
    const response = await app.request('/stream', {
      method: 'OPTIONS',
      headers: {
        Origin: APP,
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'authorization',
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe(APP);
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization');
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
  });

  test('can read refusals, and the headers that say when to come again', async () => {
    const response = await app.request('/stream', { headers: { Origin: APP } });
    expect(response.status).toBe(401);
    expect(response.headers.get('access-control-allow-origin')).toBe(APP);
    expect(response.headers.get('access-control-expose-headers')).toContain('Retry-After');
  });

  test('can keep what has an ETag, and can read the tag that its next write demands', async () => {
    const sent = { Origin: APP, Authorization: 'Bearer x' };
    for (const [status, more] of [[200, {}] as const, [304, { 'If-None-Match': '"7"' }] as const]) {
      const response = await app.request('/thing', { headers: { ...sent, ...more } });
      expect([response.status, response.headers.get('etag')]).toEqual([status, '"7"']);
      expect(response.headers.get('cache-control')).toBe('no-cache, private');
      expect(response.headers.get('access-control-expose-headers')).toContain('ETag');
    }
    const changed = await app.request('/thing', { method: 'PATCH', headers: sent });
    expect(changed.headers.get('cache-control')).toBe('no-store');
  });

  test('is named by streams too', async () => {
    const answer = await app.request('/stream', { headers: { Origin: APP, Authorization: 'Bearer x' } });
    expect(await answer.json()).toEqual({ 'Access-Control-Allow-Origin': APP, Vary: 'Origin' });
  });
});

test('OPTIONS that is no preflight tells the verbs to who has a token, whatever origins are allowed', async () => {
  const sent = { Authorization: 'Bearer x' };
  for (const app of [appFor([APP]), appFor(['*']), appFor([])]) {
    for (const more of [{}, { Origin: APP }]) {
      const response = await app.request('/thing', { method: 'OPTIONS', headers: { ...sent, ...more } });
      expect([response.status, response.headers.get('allow')]).toEqual([204, 'GET, HEAD, PATCH']);
      expect((await app.request('/thing', { method: 'OPTIONS', headers: more })).status).toBe(401);
    }
  }
});

test.each([
  ['another origin', [APP], 'https://app.example.dev.evil.example'],
  ['any origin, where none is allowed', [], APP],
  ['what calls without an origin', ['*'], undefined],
])('%s is not named', async (_, allowed, origin) => {
  const headers = { Authorization: 'Bearer x', ...(origin !== undefined && { Origin: origin }) };
  const answer = await appFor(allowed).request('/stream', { headers });
  expect(await answer.json()).toEqual({});
  if (origin !== undefined) expect(answer.headers.get('access-control-allow-origin')).toBeNull();
});

test('with * every origin is allowed', async () => {
  const answer = await appFor(['*']).request('/stream', { headers: { Authorization: 'Bearer x', Origin: 'null' } });
  expect(await answer.json()).toEqual({ 'Access-Control-Allow-Origin': '*', Vary: 'Origin' });
});
