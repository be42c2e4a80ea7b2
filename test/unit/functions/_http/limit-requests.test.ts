import { Hono } from 'hono';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { HttpEnv } from '#http/app.ts';
import { limitRequests } from '#http/limit-requests.ts';
import { StatusError } from '#core/status-error.ts';

const WIDGET = '/apis/example.dev/v1/namespaces/acme/widgets/blue';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Of a tenant that may make one request, and the next one after two seconds, which do not pass. It has made that one. */
async function spent(): Promise<(method: string, path: string, body?: unknown) => Promise<string>> {
  const limits = { requestsPerSecond: 0.5, watchers: 1 };
  const app = new Hono<HttpEnv>();
  app.use(async (c, next) => {
    c.set('caller', { audience: 'public', subject: 'ann', roles: ['editor'], tenants: ['acme'], expiresAtMs: 0 });
    await next();
  });
  app.use(limitRequests({ limits: { default: limits, of: () => limits }, onRefused: () => undefined }));
  app.all('*', async (c) => c.text(`taken: ${await c.req.raw.text()}`));
  app.onError((error, c) => c.text(error instanceof StatusError ? error.reason : String(error)));
  const send = async (method: string, path: string, body?: unknown): Promise<string> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = app.request(path, {
      method,
      ...(text !== undefined && { body: text, headers: { 'content-length': String(text.length) } }),
    });
    return settled(Promise.resolve(answer).then((response) => response.text()));
  };
  expect(await send('GET', WIDGET)).toBe('taken: ');
  return send;
}

/** A refusal is held back for a while; nothing else waits here. */
async function settled(waiting: Promise<string>): Promise<string> {
  let isOver = false;
  const done = waiting.finally(() => (isOver = true));
  await vi.waitUntil(async () => {
    if (!isOver && vi.getTimerCount() > 0) vi.runOnlyPendingTimers();
    return isOver;
  });
  return done;
}

test.each<[string, string, string, unknown?]>([
  ['a deletion', 'DELETE', WIDGET],
  ['a deletion by force', 'POST', `${WIDGET}/force-delete`, { reason: 'gone' }],
  ['a merge patch of finalizers', 'PATCH', WIDGET, { metadata: { finalizers: null, resourceVersion: '7' } }],
  [
    'a JSON patch of finalizers',
    'PATCH',
    WIDGET,
    [
      { op: 'test', path: '/metadata/resourceVersion', value: '7' },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ],
  ],
])(
  '%s gets through when the rate is spent, as it was sent, but not a flood of them',
  async (_what, method, path, body) => {
    const send = await spent();
    expect(await send(method, path, body)).toBe(`taken: ${body === undefined ? '' : JSON.stringify(body)}`);
    expect(await send(method, path, body)).toBe('TooManyRequests');
  },
);

test.each<[string, string, unknown?]>([
  ['a read', 'GET'],
  ['a replacement', 'PUT', { metadata: { finalizers: [] } }],
  ['a patch of the spec', 'PATCH', { spec: {} }],
  ['a patch of finalizers and more', 'PATCH', { metadata: { finalizers: null }, spec: {} }],
  ['a patch of finalizers and labels', 'PATCH', { metadata: { finalizers: null, labels: {} } }],
  ['a JSON patch of something else', 'PATCH', [{ op: 'remove', path: '/metadata/finalizersOfMine' }]],
  ['a patch of nothing', 'PATCH', 'x'],
  ['a long one', 'PATCH', { metadata: { finalizers: ['x'.repeat(5000)] } }],
])('%s does not', async (_what, method, body) => {
  const send = await spent();
  expect(await send(method, WIDGET, body)).toBe('TooManyRequests');
});

test('deletions leave the rate of the rest alone', async () => {
  const send = await spent();
  await vi.advanceTimersByTimeAsync(2000);
  expect(await send('DELETE', WIDGET)).toBe('taken: ');
  expect(await send('GET', WIDGET)).toBe('taken: ');
});
