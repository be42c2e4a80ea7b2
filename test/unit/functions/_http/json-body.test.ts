import type { Hono } from 'hono';
import { expect, test } from 'vitest';

import { createHttpApp, type HttpEnv } from '#http/app.ts';
import { MAX_BODY_BYTES, readJsonBody } from '#http/json-body.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const app: Hono<HttpEnv> = createHttpApp({ logger: silentLogger });
app.post('/', async (c) => c.json({ keys: Object.keys(await readJsonBody(c, 'application/json')) }));

function post(body: NonNullable<RequestInit['body']>, headers: Record<string, string> = JSON_TYPE): Promise<Response> {
  return Promise.resolve(app.request('/', { method: 'POST', body, headers, duplex: 'half' }));
}

function chunked(chunk: Uint8Array<ArrayBuffer>, chunks: number): { readonly body: ReadableStream; pulled(): number } {
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (pulled++ === chunks) controller.close();
        else controller.enqueue(chunk);
      },
    },
    { highWaterMark: 0 },
  );
  return { body, pulled: () => pulled };
}

test.for<[Record<string, string>, number]>([
  [{ 'Content-Type': 'application/json' }, 200],
  [{ 'Content-Type': 'Application/JSON; charset=UTF-8' }, 200],
  [{ 'Content-Type': 'application/json; charset=latin1' }, 415],
  [{ 'Content-Type': 'text/plain' }, 415],
  [{ 'Content-Type': 'application/jsonp' }, 415],
  [{ 'Content-Type': 'application/merge-patch+json' }, 415],
  [{ 'Content-Type': '' }, 415],
  [{ ...JSON_TYPE, 'Content-Encoding': 'gzip' }, 415],
])('a body with the headers %j is answered %i', async ([headers, status]) => {
  expect((await post('{"a":1}', headers)).status).toBe(status);
});

test.for<[string, string]>([
  ['', 'the body is empty'],
  ['[]', 'must be a JSON object'],
  ['null', 'must be a JSON object'],
  ['"text"', 'must be a JSON object'],
  ['{"a":', 'at position 5'],
])('a body of %j is a bad request', async ([body, words]) => {
  const response = await post(body);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    kind: 'Status',
    reason: 'BadRequest',
    message: expect.stringContaining(words),
  });
});

test('a body that is not UTF-8 is a bad request', async () => {
  const response = await post(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]));
  expect(await response.json()).toMatchObject({ code: 400, message: 'the body is not valid UTF-8' });
});

test('a body may have exactly the largest size, and not a byte more', async () => {
  const largest = `{"a":"${'x'.repeat(MAX_BODY_BYTES - 8)}"}`;
  expect((await post(largest)).status).toBe(200);
  expect((await post(largest.replace('{', '{ '))).status).toBe(413);
});

test('a body without a length is read no further than its limit', async () => {
  const endless = chunked(new Uint8Array(64 * 1024).fill(0x20), Infinity);
  expect((await post(endless.body)).status).toBe(413);
  expect(endless.pulled()).toBeLessThan(20);
});

test('a body without a length is read whole below its limit', async () => {
  const response = await post(chunked(new TextEncoder().encode(' '), 100).body);
  expect(await response.json()).toMatchObject({ code: 400, message: expect.stringContaining('at position 100') });
});

test('a body that breaks off is a bad request', async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
  expect(await (await post(broken)).json()).toMatchObject({
    code: 400,
    message: 'the body ended before it was complete',
  });
});
