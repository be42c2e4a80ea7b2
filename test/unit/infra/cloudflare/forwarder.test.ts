import { createServer, type IncomingMessage, request, type RequestListener, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen } from '#adapters/node/listen.ts';
import { type Forwarder, SCHEDULED, startForwarder } from '#infra/cloudflare/dev/forwarder.ts';
import { MAX_BODY_BYTES } from '#http/json-body.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

let answer: RequestListener;
let seen: IncomingMessage[];
let worker: Server;
let forwarder: Forwarder;

beforeEach(async () => {
  seen = [];
  answer = (_request, response) => void response.end('here');
  worker = createServer((received, response) => {
    seen.push(received);
    answer(received, response);
  });
  const port = Number(new URL(await listen(worker, { host: '127.0.0.1', port: 0 })).port);
  forwarder = await startForwarder({
    host: '127.0.0.1',
    port: 0,
    to: () => port,
    tool: SCHEDULED,
    logger: silentLogger,
  });
});

afterEach(async () => {
  await forwarder.stop();
  worker.close();
  worker.closeAllConnections();
});

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function ask({ body, ...options }: Asked): Promise<{ status: number; retryAfter: unknown; body: string }> {
  const [hostname, port] = forwarder.address.split(':');
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request({ hostname, port, ...options })
    .on('response', resolve)
    .on('error', reject)
    .end(body);
  const received = await promise;
  return { status: received.statusCode!, retryAfter: received.headers['retry-after'], body: await text(received) };
}

test('whatever host a request names, it is asked of the one of this address', async () => {
  await ask({
    path: '/metrics?a=b',
    headers: { Host: 'ops.example', 'MF-Original-URL': 'http://ops.example/metrics' },
  });
  await ask({ path: 'http://ops.example/metrics' });
  expect(seen.map(({ url }) => url)).toEqual(['/metrics?a=b', '/metrics']);
  for (const { headers } of seen) {
    expect(headers.host).toBe(forwarder.address);
    expect(headers).not.toHaveProperty('mf-original-url');
  }
});

test.each([
  '/cdn-cgi/handler/scheduled',
  '/cdn-cgi/explorer/api/do/query',
  '/a/../cdn-cgi/handler/scheduled',
  '/a/%2e%2e/cdn-cgi/handler/scheduled',
  'http://ops.example/cdn-cgi/handler/scheduled',
])('what wrangler has at %s is not there', async (path) => {
  expect((await ask({ path })).status).toBe(404);
  expect(seen).toEqual([]);
});

test('the tool that was asked for is', async () => {
  expect(await ask({ path: SCHEDULED })).toMatchObject({ status: 200, body: 'here' });
});

test('a target that is no path is refused', async () => {
  expect((await ask({ path: '*', method: 'OPTIONS' })).status).toBe(400);
});

test.each<[string, RequestListener]>([
  ['that is wrangler’s 500', (_request, response) => void response.writeHead(500).end('Error: at Miniflare')],
  ['that never came', ({ socket }) => void socket.destroy()],
])('an answer %s is told as 503, with the time to come again', async (_name, listener) => {
  answer = listener;
  const { status, retryAfter, body } = await ask({ path: '/apis' });
  expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '1' });
  expect(JSON.parse(body)).toMatchObject({ kind: 'Status', reason: 'ServiceUnavailable' });
});

test('a 500 of the worker is passed on', async () => {
  answer = (_request, response) =>
    void response.writeHead(500, { 'Content-Type': 'application/json' }).end('{"kind":"Status"}');
  expect(await ask({ path: '/apis' })).toMatchObject({ status: 500, body: '{"kind":"Status"}' });
});

test('a body without a length is read to its limit, and passed on below it', async () => {
  answer = (received, response) =>
    void text(received).then(
      (body) => response.end(String(body.length)),
      () => undefined,
    );
  const chunked = { method: 'POST', headers: { 'Transfer-Encoding': 'chunked' } };
  expect(await ask({ ...chunked, body: 'a'.repeat(MAX_BODY_BYTES) })).toMatchObject({ body: String(MAX_BODY_BYTES) });
  expect(await ask({ ...chunked, body: 'a'.repeat(60 * MAX_BODY_BYTES) })).toMatchObject({ status: 413 });
});

test('a client that goes ends its request at the worker, and a worker that breaks off its answer', async () => {
  const { promise: gone, resolve: onGone } = Promise.withResolvers<void>();
  answer = (_request, response) => {
    response.write('first');
    response.once('close', onGone);
  };
  const leaving = new AbortController();
  const stream = await fetch(`http://${forwarder.address}/watch/`, { signal: leaving.signal });
  leaving.abort();
  await gone;
  expect(stream.status).toBe(200);
  answer = (_request, response) => void response.write('first', () => response.destroy());
  const broken = await fetch(`http://${forwarder.address}/watch/`);
  await expect(broken.text()).rejects.toThrow('terminated');
});
