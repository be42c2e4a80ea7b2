import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import { startLocalServer, type LocalServer } from '#test/http/local-server.ts';
import { isProgress, openSse } from '#test/support/sse-client.ts';
import { startTcpProxy, type TcpProxy, type TcpProxyOptions } from '#test/support/tcp-proxy.ts';

const IDLE_TIMEOUT_MS = 20_000;
const BOOKMARK_MS = 15_000;
const END_OF_HEADERS = '\r\n\r\n';

let server: LocalServer;
let tenant: FaultTenant;

beforeAll(async () => {
  server = await startLocalServer();
  tenant = await makeTenant(server.targets.public);
});

afterAll(() => server.stop());

async function proxyOf(options: Omit<TcpProxyOptions, 'host' | 'port'>): Promise<{ proxy: TcpProxy; url: string }> {
  const { hostname, port } = new URL(server.targets.public.baseUrl);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port), ...options });
  return { proxy, url: `http://127.0.0.1:${proxy.port}/watch/v1/events` };
}

/** Passes nothing on before the first byte of content, as proxies do that look at an answer before they choose how to send it. */
function holdHeaders(toClient: (bytes: Buffer) => void): (bytes: Buffer) => void {
  let held: Buffer | undefined = Buffer.alloc(0);
  return (bytes) => {
    if (!held) return toClient(bytes);
    held = Buffer.concat([held, bytes]);
    const end = held.indexOf(END_OF_HEADERS);
    if (end === -1) return;
    const isChunked = /\r\ntransfer-encoding: *chunked/i.test(held.toString('latin1', 0, end));
    // In front of content in chunks is the size of the first one.
    const start = isChunked ? held.indexOf('\r\n', end + END_OF_HEADERS.length) + 2 : end + END_OF_HEADERS.length;
    if (start < end || held.length <= start) return;
    toClient(held);
    held = undefined;
  };
}

describe.concurrent('through a proxy', () => {
  test('that buffers the headers until the first byte of content, a watch starts at once', async () => {
    const { proxy, url } = await proxyOf({ answers: holdHeaders });
    const client = await openSse(url, { token: tenant.token });
    expect((await client.next(2_000)).event).toBe('READY');
    const admin = await clientOf(server.targets.public, { roles: ['admin'], tenants: '*' });
    const { body } = await admin.post(`/apis/example.dev/v1/namespaces/${tenant.tenant}/widgets`, {
      metadata: { name: 'held' },
    });
    expect((await client.waitFor(({ data }) => data.uid === body.metadata.uid)).event).toBe('ADDED');
    await client.close();
    await proxy.stop();
  });

  test('that buffers the headers, a refused Last-Event-ID is told too, and so is an error', async () => {
    const { proxy, url } = await proxyOf({ answers: holdHeaders });
    const client = await openSse(url, { token: tenant.token, lastEventId: 'nonsense' });
    expect((await client.next(2_000)).event).toBe('ERROR');
    await client.ended;
    const { status } = await fetch(`${url}?from=nonsense`, { headers: { Authorization: `Bearer ${tenant.token}` } });
    expect(status).toBe(400);
    await proxy.stop();
  });

  test('that cuts connections which are idle for 20 s, a stream without events lives on its bookmarks', async () => {
    const { proxy, url } = await proxyOf({ idleTimeoutMs: IDLE_TIMEOUT_MS });
    const client = await openSse(`${url}?tenants=${tenant.tenant}&kinds=ManagedDatabase`, { token: tenant.token });
    await client.next();
    // Together longer than the proxy waits.
    for (let count = 0; count < 2; count++) {
      await client.waitFor(isProgress, BOOKMARK_MS + 1_000);
    }
    expect([proxy.idleCuts, client.isEnded]).toEqual([0, false]);
    await client.close();
    await proxy.stop();
  });
});
