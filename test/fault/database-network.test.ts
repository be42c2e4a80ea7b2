import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { expectAlive, expectRefusedWell, untilReadiness } from '#test/fault/expectations.ts';
import { type ResumingWatcher, startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import { startWriters, type Writers } from '#test/fault/writers.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { openSse } from '#test/support/sse-client.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

/** From the moment that the network works again. */
const RECOVERY_LIMIT_MS = 5_000;

let database: TestDatabase;
let proxy: TcpProxy;
let instance: LocalInstance;
let tenant: FaultTenant;

beforeAll(async () => {
  database = await createTestDatabase();
  const url = new URL(database.url);
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  instance = await startLocalInstance({ databaseUrl: url.href });
  tenant = await makeTenant(instance);
});

afterEach(() => expectAlive(instance));

afterAll(async () => {
  await instance.stop();
  await proxy.stop();
  await database.drop();
});

interface Load {
  readonly writers: Writers;
  readonly watcher: ResumingWatcher;
}

async function startLoad(writerCount = 4): Promise<Load> {
  const { baseUrl } = instance;
  const watcher = startResumingWatcher({ baseUrl: () => baseUrl, token: tenant.token, tenants: tenant.tenant });
  await watcher.ready;
  const writers = startWriters({ baseUrl: () => baseUrl, ...tenant, count: writerCount });
  await writers.more(40);
  return { writers, watcher };
}

/** Ends the load and asserts what must hold whatever the network did. Gives how long the first event behind it took. */
async function expectRecovery({ writers, watcher }: Load): Promise<number> {
  const begin = performance.now();
  await writers.more(1);
  const newest = writers.acknowledged.at(-1);
  await watcher.until(({ uid, atMs }) => uid === newest?.uid || atMs > begin);
  const recoveryMs = performance.now() - begin;
  await untilReadiness(instance.opsUrl, 200);
  await writers.more(40);
  await writers.stop();
  await expectDelivered(watcher, writers.acknowledged);
  expectRefusedWell(writers);
  expect(watcher.connections).toBe(1);
  await watcher.stop();
  expect(recoveryMs).toBeLessThan(RECOVERY_LIMIT_MS);
  return recoveryMs;
}

function report(name: string, { writers }: Load, recoveryMs: number): void {
  const { acknowledged, refusals, slowestMs } = writers;
  console.log(
    `${name}: ${acknowledged.length} writes answered, ${refusals.length} refused, slowest answer ${Math.round(slowestMs)} ms, ` +
      `writes and events again after ${Math.round(recoveryMs)} ms`,
  );
}

describe('while writes are refused with 503 or answered, watchers stay connected and miss nothing', () => {
  test('when all connections to the database break, 20 times', { timeout: 60_000 }, async () => {
    const load = await startLoad();
    for (let round = 0; round < 20; round++) {
      await load.writers.more(10);
      proxy.cut();
    }
    report('cut', load, await expectRecovery(load));
  });

  test.each([
    ['the database is refused for 10 s', 'refuse', 10_000],
    ['connections are taken and closed at once for 3 s', 'hangUp', 3_000],
    ['connections stall for 12 s', 'stall', 12_000],
  ] as const)('when %s', { timeout: 60_000 }, async (_, fault, durationMs) => {
    // More than there are connections: those that wait for one are told in time, too.
    const load = await startLoad(24);
    await proxy[fault]();
    expect(JSON.parse(await untilReadiness(instance.opsUrl, 503))).toMatchObject({ status: 'not ready' });
    await delay(durationMs);
    expect(load.watcher.isConnected).toBe(true);
    await proxy.resume();
    report(fault, load, await expectRecovery(load));
    expect(load.writers.refusals.length).toBeGreaterThan(0);
  });

  test('new watches are refused with 503 meanwhile, and ready ones are told of the loss by nothing', async () => {
    const load = await startLoad();
    await proxy.refuse();
    const response = await fetch(`${instance.baseUrl}/watch/v1/events?initial=true`, {
      headers: { Authorization: `Bearer ${tenant.token}` },
    });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({ kind: 'Status', reason: 'ServiceUnavailable', code: 503 });
    await proxy.resume();
    await expectRecovery(load);
  });

  test('an initial state that is being read ends with ERROR 503, and can be asked for again', async () => {
    const { baseUrl } = instance;
    // More than the network holds.
    const large = startWriters({ baseUrl: () => baseUrl, ...tenant, text: 'x'.repeat(800_000) });
    await large.more(80);
    await large.stop();
    const ask = (): Promise<Response> =>
      fetch(`${baseUrl}/watch/v1/events?initial=true&tenants=${tenant.tenant}`, {
        headers: { Authorization: `Bearer ${tenant.token}` },
      });
    const interrupted = (await ask()).body?.getReader();
    await interrupted?.read();
    proxy.cut();
    expect(await lastFrameOf(interrupted)).toMatch(
      /^event: ERROR\ndata: \{.*"reason":"ServiceUnavailable".*"code":503\}$/,
    );

    const again = await openSse(`${baseUrl}/watch/v1/events?initial=true&tenants=${tenant.tenant}`, {
      token: tenant.token,
    });
    await again.waitFor(({ event }) => event === 'BOOKMARK');
    await again.close();
  });
});

async function lastFrameOf(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
    text = (text + decoder.decode(part.value, { stream: true })).slice(-10_000);
  }
  return text.trimEnd().split('\n\n').at(-1);
}
