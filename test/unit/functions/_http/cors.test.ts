import { describe, expect, test } from 'vitest';
import { createHttpApp } from '#http/app.ts';
import { originHeaders } from '#http/cors.ts';
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

  test('is named by streams too', async () => {
    const answer = await app.request('/stream', { headers: { Origin: APP, Authorization: 'Bearer x' } });
    expect(await answer.json()).toEqual({ 'Access-Control-Allow-Origin': APP, Vary: 'Origin' });
  });
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
