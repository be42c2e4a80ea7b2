/** What middleware puts on answers, each on its own path, as it comes out together: for a page of another origin. */

import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { createWidget, makeWorld, type World } from '#test/http/resource-api/world.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const ORIGIN = 'https://app.example.dev';

let database: TestDatabase;
let instance: LocalInstance;
let world: World;
let token: string;
const lines: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  instance = await startLocalInstance({
    databaseUrl: database.url,
    env: { CORS_ORIGINS: ORIGIN, LOG_LEVEL: 'debug' },
    onLine: (line) => void lines.push(line),
  });
  world = await makeWorld(instance);
  token = await instance.token({ roles: ['editor'], tenants: [world.tenant] });
});

afterAll(async () => {
  await instance?.stop();
  await database.drop();
});

interface RawAnswer {
  readonly code: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** As it lies on the wire. */
async function send(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: object,
): Promise<RawAnswer> {
  const sent = request(instance.baseUrl + path, {
    method,
    headers: {
      Origin: ORIGIN,
      Authorization: `Bearer ${token}`,
      'Accept-Encoding': 'gzip',
      'X-Request-Id': 'page-1',
      ...(body && { 'Content-Type': 'application/json' }),
      ...headers,
    },
  });
  sent.end(body && JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { code: answer.statusCode, headers: answer.headers, body: await buffer(answer) };
}

/** On every answer, to whatever it was. */
function expectCommon({ headers }: RawAnswer): void {
  expect(headers).toMatchObject({ 'x-request-id': 'page-1', 'access-control-allow-origin': ORIGIN });
  expect(headers.vary).toContain('Origin');
  for (const name of ['ETag', 'Retry-After', 'Warning', 'WWW-Authenticate', 'X-Request-Id']) {
    expect(headers['access-control-expose-headers']).toContain(name);
  }
}

test('an object: its tag, for the cache of the caller alone; 304 with all of it', async () => {
  const { metadata } = await createWidget(world);
  const read = await send('GET', world.widget(metadata.name));
  const tag = `"${metadata.resourceVersion}"`;
  const kept = await send('GET', world.widget(metadata.name), { 'If-None-Match': tag });
  expect([read.code, kept.code, kept.body.byteLength]).toEqual([200, 304, 0]);
  for (const answer of [read, kept]) {
    expectCommon(answer);
    expect(answer.headers).toMatchObject({ etag: tag, 'cache-control': 'no-cache, private' });
  }
});

test('a large list: compressed, for no cache, and its variants are told apart', async () => {
  for (let n = 0; n < 80; n++) await createWidget(world, { annotations: { text: 'x'.repeat(2_000) } });
  const list = await send('GET', world.widgets);
  expectCommon(list);
  expect(list.headers).toMatchObject({ 'content-encoding': 'gzip', 'cache-control': 'no-store' });
  expect(list.headers.vary).toContain('Accept-Encoding');
  expect(JSON.parse(gunzipSync(list.body).toString()).items.length).toBeGreaterThanOrEqual(80);
});

test('a write with a warning', async () => {
  const written = await send('POST', world.widgets, {}, { metadata: { name: 'warned' }, spec: {}, unknown: 1 });
  expect(written.code, written.body.toString()).toBe(201);
  expectCommon(written);
  expect(written.headers).toMatchObject({ 'cache-control': 'no-store', warning: expect.stringContaining('unknown') });
});

test.for<[number, string, string, Record<string, string>]>([
  [401, 'GET', '/apis', { Authorization: 'Bearer nonsense' }],
  [403, 'POST', '/apis/plumbline.dev/v1/tenants', { 'Content-Type': 'application/json' }],
  [404, 'GET', '/nothing', {}],
  [405, 'DELETE', '/apis', {}],
  [406, 'GET', '/watch/v1/events', { Accept: 'application/json' }],
  [415, 'POST', '/watch/v1/acks', { 'Content-Type': 'text/plain' }],
])('a refusal: %d', async ([code, method, path, headers]) => {
  const refused = await send(method, path, headers, method === 'POST' ? { metadata: { name: 'x' } } : undefined);
  expect(refused.code, refused.body.toString()).toBe(code);
  expectCommon(refused);
  expect(refused.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
  expect(JSON.parse(refused.body.toString())).toMatchObject({ kind: 'Status', code });
});

test('every one of them is a line in the log with the id of its request', async () => {
  const requestId = `page-${crypto.randomUUID()}`;
  await send('GET', '/apis', { 'X-Request-Id': requestId, Authorization: 'Bearer nonsense' });
  const own = (): readonly string[] => lines.filter((line) => line.includes(requestId));
  await expect.poll(own).toHaveLength(1);
  expect(JSON.parse(own().join())).toMatchObject({ requestId, status: 401, path: '/apis', method: 'GET' });
  expect(lines.join('\n')).not.toContain(token);
});
