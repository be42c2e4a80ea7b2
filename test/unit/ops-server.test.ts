import { createServer } from 'node:http';
import { once } from 'node:events';
import { Gauge, Registry } from 'prom-client';
import { afterEach, describe, expect, test } from 'vitest';
import { type OpsServer, type OpsServerOptions, startOpsServer } from '#adapters/node/ops-server.ts';

let server: OpsServer | undefined;

afterEach(() => server?.stop());

async function start(options: Partial<OpsServerOptions> = {}): Promise<string> {
  server = await startOpsServer({ host: '127.0.0.1', port: 0, registry: new Registry(), checks: [], ...options });
  return server.url;
}

describe('startOpsServer()', () => {
  test('says that it is alive while it is not ready', async () => {
    const url = await start({ checks: [{ name: 'database', check: () => Promise.reject(new Error('refused')) }] });
    const response = await fetch(`${url}/healthz`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 'alive' });
  });

  test('is ready when every check passes', async () => {
    const url = await start({ checks: [{ name: 'database', check: async () => undefined }] });
    const response = await fetch(`${url}/readyz`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 'ready', checks: [{ name: 'database', status: 'ready' }] });
  });

  test('leaves out the checks that it is told to, and refuses names that it does not know', async () => {
    const checks = [
      { name: 'database', check: async () => undefined },
      { name: 'publishing', check: () => Promise.reject(new Error('late')) },
    ];
    const url = await start({ checks });
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    const response = await fetch(`${url}/readyz?exclude=publishing`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 'ready', checks: [{ name: 'database', status: 'ready' }] });
    const refused = await fetch(`${url}/readyz?exclude=nothing`);
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: 'there is no check nothing; there are database, publishing' },
    ]);
  });

  test('names each check that fails or does not answer in time, with the reason, and tells it to give up', async () => {
    let givenUp = false;
    const url = await start({
      checkTimeoutMs: 50,
      checks: [
        { name: 'database', check: async () => undefined },
        { name: 'outbox', check: () => Promise.reject(new Error('oldest record is 90 s old')) },
        {
          name: 'broker',
          check: (signal) => new Promise(() => signal.addEventListener('abort', () => (givenUp = true))),
        },
      ],
    });
    const response = await fetch(`${url}/readyz`);
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({
      status: 'not ready',
      checks: [
        { name: 'database', status: 'ready' },
        { name: 'outbox', status: 'not ready', reason: 'oldest record is 90 s old' },
        { name: 'broker', status: 'not ready', reason: 'no answer within 50 ms' },
      ],
    });
    expect(givenUp).toBe(true);
  });

  test('gives the metrics of its registry to Prometheus', async () => {
    const registry = new Registry();
    new Gauge({ name: 'plumbline_watchers', help: 'Open watch streams.', registers: [registry] }).set(3);
    const response = await fetch(`${await start({ registry })}/metrics`);
    expect(response.headers.get('content-type')).toBe(registry.contentType);
    expect(await response.text()).toContain('\nplumbline_watchers 3\n');
  });

  test('answers 404 with what there is, 405 with what is allowed, and HEAD without a body', async () => {
    const url = await start();
    const missing = await fetch(`${url}/constructor?x=/healthz`);
    expect(missing.status).toBe(404);
    expect(await missing.json()).toEqual({
      error: 'there is no /constructor; there are /healthz, /readyz, /metrics',
    });
    const posted = await fetch(`${url}/healthz`, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const head = await fetch(`${url}/healthz`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test('fails with the reason of the system when the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    await expect(start({ port })).rejects.toMatchObject({ code: 'EADDRINUSE', port });
    other.close();
  });

  test('tells an address that can be connected to when it listens on all', async () => {
    const url = await start({ host: '0.0.0.0' });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});
