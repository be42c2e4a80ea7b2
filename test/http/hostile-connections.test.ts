/** Connections that never become a good request: each is answered or cut, and others are served meanwhile. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { clientOf, type Client } from '#test/http/client.ts';

let server: ApiServer;
let client: Client;
let authorization: string;
const sockets: Socket[] = [];
const WIDGETS = '/apis/example.dev/v1/namespaces/shared/widgets';

beforeAll(async () => {
  server = await startApiServer({ timeoutsMs: { header: 400, request: 800, check: 50 } });
  client = await clientOf(server, { roles: ['admin'], tenants: '*' });
  authorization = `Authorization: Bearer ${await server.token({ roles: ['admin'], tenants: '*' })}`;
});

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

afterAll(() => server?.stop());

async function open(): Promise<Socket> {
  const { hostname, port } = new URL(server.baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** All that comes until the server closes. */
async function answerTo(bytes: string): Promise<string> {
  const socket = await open();
  socket.write(bytes);
  return text(socket);
}

/** Writes the piece again and again until the server closes; what it said. */
async function dribble(head: string, piece: string): Promise<string> {
  const socket = await open();
  socket.write(head);
  const writing = setInterval(() => socket.writable && socket.write(piece), 20);
  socket.once('data', () => clearInterval(writing));
  try {
    return await text(socket);
  } finally {
    clearInterval(writing);
  }
}

function expectStatus(answer: string, code: number, reason: string): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toContain(`HTTP/1.1 ${code} `);
  expect(head).toMatch(/^x-request-id: \S+/im);
  expect(head).toMatch(/^cache-control: no-store\r?$/im);
  expect(JSON.parse(body)).toMatchObject({ kind: 'Status', status: 'Failure', code, reason });
}

test.for([
  ['a query of 16 KiB', `GET ${WIDGETS}?labelSelector=${'a,'.repeat(8_192)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ['a path of 16 KiB', `GET /${'a/'.repeat(8_192)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ['header fields of 16 KiB', `GET / HTTP/1.1\r\nHost: x\r\n${`X-A: ${'b'.repeat(1_000)}\r\n`.repeat(17)}\r\n`],
] as const)('%s is told to be too much', async ([, bytes]) => {
  expectStatus(await answerTo(bytes), 431, 'RequestHeaderFieldsTooLarge');
});

test.for([
  ['no HTTP', 'hello\r\n\r\n'],
  [
    'a body with two lengths',
    `POST ${WIDGETS} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  ],
  [
    'a body with a length and chunks',
    `POST ${WIDGETS} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['a field with a NUL', 'GET / HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n'],
] as const)('%s is told to be no request', async ([, bytes]) => {
  expectStatus(await answerTo(bytes), 400, 'BadRequest');
});

test('a header that comes a field at a time is cut off, and others are served meanwhile', async () => {
  const slow = Array.from({ length: 50 }, () => dribble('GET / HTTP/1.1\r\n', 'X-A: b\r\n'));
  expect((await client.get('/apis')).status).toBe(200);
  for (const answer of await Promise.all(slow)) expectStatus(answer, 408, 'RequestTimeout');
});

test('a body in chunks that never ends is cut off', async () => {
  const head = `POST ${WIDGETS} HTTP/1.1\r\nHost: x\r\n${authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  expectStatus(await dribble(head, '1\r\n \r\n'), 408, 'RequestTimeout');
  expect((await client.get(WIDGETS)).status).toBe(200);
});

test('a body that stops in its midst is told to be late', async () => {
  const head = `POST ${WIDGETS} HTTP/1.1\r\nHost: x\r\n${authorization}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n`;
  expectStatus(await answerTo(`${head}{"kind"`), 408, 'RequestTimeout');
});

test.for([
  ['no host', 'GET /version HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'BadRequest'],
  ['a host that is none', 'GET /version HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n', 400, 'BadRequest'],
  ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, 'BadRequest'],
  ['an expectation', 'GET /version HTTP/1.1\r\nHost: x\r\nExpect: foo\r\n\r\n', 417, 'ExpectationFailed'],
] as const)('%s that nobody can serve is refused with the cause', async ([, bytes, code, reason]) => {
  expectStatus(await answerTo(bytes), code, reason);
});

test('a small body that would unpack to much is not unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, '['));
  expect(bomb.byteLength).toBeLessThan(512 * 1024);
  const before = process.memoryUsage.rss();
  for (let n = 0; n < 8; n++) {
    const answer = await client.send('POST', WIDGETS, new Uint8Array(bomb), { 'Content-Encoding': 'gzip' });
    expect(answer.status).toBe(415);
  }
  expect(process.memoryUsage.rss() - before).toBeLessThan(512 * 1024 * 1024);
});
