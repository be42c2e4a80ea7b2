import { expect, test } from 'vitest';

import { createHttpApp } from '#http/app.ts';
import { MissingRight } from '#http/authorize.ts';
import { methods } from '#http/methods.ts';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError } from '#core/status-error.ts';

interface Line {
  readonly level: string;
  readonly fields: Record<string, unknown>;
}

function logTo(lines: Line[]): Logger {
  const writer = (level: string) => (fields: object) => void lines.push({ level, fields: { ...fields } });
  const logger: Logger = {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    child: () => logger,
  };
  return logger;
}

const lines: Line[] = [];
const app = createHttpApp({ logger: logTo(lines) });
app.all('/thing', methods({ GET: (c) => c.text('a thing'), DELETE: (c) => c.text('gone') }));
app.get('/fault', () => {
  throw new Error('password=hunter2');
});
app.get('/later', () => {
  throw new StatusError('ServiceUnavailable', 'the database is away', { details: { retryAfterSeconds: 7 } });
});
app.get('/who', () => {
  throw new StatusError('Unauthorized', 'a "good" token\n is needed');
});
app.get('/not-allowed', () => {
  throw new MissingRight('you may not');
});

test('a fault of ours is a generic 500 outside, and its cause is in the log with the id of the request', async () => {
  const response = await app.request('/fault', { headers: { 'X-Request-Id': 'req-1' } });
  expect(response.status).toBe(500);
  expect(response.headers.get('X-Request-Id')).toBe('req-1');
  const body = await response.text();
  expect(JSON.parse(body)).toMatchObject({ kind: 'Status', reason: 'InternalError', code: 500 });
  expect(body).toContain('request id req-1');
  expect(body).not.toContain('hunter2');
  const line = lines.find(({ level }) => level === 'error');
  expect(line?.fields).toMatchObject({ requestId: 'req-1', path: '/fault', err: { message: 'password=hunter2' } });
});

test.each(['TooManyRequests', 'ServiceUnavailable', 'Timeout'] as const)(
  '%s says when to try again, in the header and in the body, even if nobody said it',
  async (reason) => {
    const passing = createHttpApp({ logger: logTo([]) });
    passing.get('/', () => {
      throw new StatusError(reason, 'busy');
    });
    const response = await passing.request('/');
    expect(response.headers.get('Retry-After')).toBe('1');
    expect(await response.json()).toMatchObject({ details: { retryAfterSeconds: 1 } });
  },
);

test('an answer says when to come again', async () => {
  expect((await app.request('/later')).headers.get('Retry-After')).toBe('7');
});

test.for([
  ['/who', undefined, 'Bearer realm="plumbline"'],
  ['/who', 'Basic YTpi', 'Bearer realm="plumbline"'],
  [
    '/who',
    'Bearer abc',
    `Bearer realm="plumbline", error="invalid_token", error_description="a 'good' token? is needed"`,
  ],
  ['/not-allowed', 'Bearer abc', 'Bearer realm="plumbline", error="insufficient_scope"'],
  ['/later', 'Bearer abc', null],
] as const)('at %s, %j is told what a token lacks, as RFC 6750 says it', async ([path, authorization, challenge]) => {
  const response = await app.request(path, { headers: authorization === undefined ? {} : { authorization } });
  expect(response.headers.get('WWW-Authenticate')).toBe(challenge);
});

test('a request id is made where none is given or the given one is not sane', async () => {
  for (const given of [undefined, '', 'has spaces', 'x'.repeat(129), 'a"b']) {
    const response = await app.request('/thing', { headers: given === undefined ? {} : { 'X-Request-Id': given } });
    expect(response.headers.get('X-Request-Id')).toMatch(/^[0-9a-f-]{36}$/);
  }
});

test('the log has the path of a request, and neither its query nor its token', async () => {
  await app.request('/thing?from=secret-cursor', { headers: { Authorization: 'Bearer secret-token' } });
  expect(lines.some(({ fields }) => fields['path'] === '/thing' && fields['status'] === 200)).toBe(true);
  expect(JSON.stringify(lines)).not.toMatch(/secret-(cursor|token)/);
});

test('an unknown path is 404, and an unknown verb 405 with those that there are', async () => {
  const missing = await app.request('/nothing');
  expect(await missing.json()).toMatchObject({ kind: 'Status', code: 404, reason: 'NotFound' });
  for (const method of ['POST', 'PROPFIND', 'constructor']) {
    const refused = await app.request('/thing', { method });
    expect(refused.status).toBe(405);
    expect(refused.headers.get('Allow')).toBe('GET, HEAD, DELETE');
    expect(await refused.json()).toMatchObject({ kind: 'Status', reason: 'MethodNotAllowed' });
  }
  const head = await app.request('/thing', { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
});
