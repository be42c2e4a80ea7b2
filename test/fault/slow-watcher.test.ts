import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { openPacedReader, type PacedReader } from '#test/fault/paced-reader.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import type { LocalInstance } from '#test/support/local-instance.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';
import { openSse } from '#test/support/sse-client.ts';

const STALL_MS = 30_000;
const EVENT_CHARACTERS = 800_000;
const WRITES = 250;
/** It takes longer than the stall time for all of it. */
const STEADY_BYTES_PER_SECOND = 5_000_000;
/**
 * Large documents make garbage: 160 MB of it when 50 MB are written, 190 MB when it is 200 MB. Whoever kept what the
 * stalled client does not take would need as much again.
 */
const MEMORY_LIMIT_MB = 320;
/** More than are served at once. */
const STALLED_READERS = 24;

const own = useOwnInstance();
let instance: LocalInstance;
let tenant: FaultTenant;

beforeAll(async () => {
  instance = await own.open();
  tenant = await makeTenant(instance);
});

function open(lastEventId = ''): Promise<PacedReader> {
  const url = `${instance.baseUrl}/watch/v1/events?tenants=${tenant.tenant}`;
  return openPacedReader({ url, token: tenant.token, lastEventId });
}

async function memoryMb(): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(instance.process.pid)]);
  return Number(stdout) / 1024;
}

async function endedAsSlow(): Promise<number> {
  const text = await (await fetch(`${instance.opsUrl}/metrics`)).text();
  return Number(/^plumbline_watch_ended_streams_total\{reason="slow"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

test(
  'a client that stops reading while 200 MB are written is cut and resumes without loss, a slow and steady one is not cut, and others do not notice',
  { timeout: 120_000 },
  async () => {
    const { baseUrl } = instance;
    const fast = startResumingWatcher({ baseUrl: () => baseUrl, token: tenant.token, tenants: tenant.tenant });
    await fast.ready;
    const [stalled, steady] = [await open(), await open()];
    stalled.pause();
    steady.setRate(STEADY_BYTES_PER_SECOND);
    const before = await memoryMb();
    let peak = before;
    const sampling = setInterval(() => void memoryMb().then((mb) => (peak = Math.max(peak, mb))), 200);
    onTestFinished(() => clearInterval(sampling));

    const begin = performance.now();
    const text = 'x'.repeat(EVENT_CHARACTERS);
    const writers = startWriters({ baseUrl: () => baseUrl, ...tenant, count: 2, text });
    await writers.more(WRITES);
    await writers.stop();
    const writtenMs = performance.now() - begin;
    // Others have all of it while one of them takes nothing.
    await expectDelivered(fast, writers.acknowledged, 10_000);
    expect(await endedAsSlow()).toBe(0);

    await vi.waitFor(async () => expect(await endedAsSlow()).toBe(1), { timeout: STALL_MS + 10_000, interval: 100 });
    const cutMs = performance.now() - begin;
    expect(cutMs).toBeGreaterThan(STALL_MS - 1_000);
    expect(steady.isEnded).toBe(false);
    clearInterval(sampling);

    stalled.setRate(Infinity);
    await stalled.ended;
    const readBefore = stalled.seqs.length;
    const resumed = await open(stalled.lastEventId);
    const all = fast.events.map(({ seq }) => seq);
    await resumed.untilCount(all.length - readBefore);
    expect([...stalled.seqs, ...resumed.seqs]).toEqual(all);

    steady.setRate(Infinity);
    await steady.untilCount(all.length);
    expect(steady.seqs).toEqual(all);
    expect(await endedAsSlow()).toBe(1);
    console.log(
      `${all.length} events, ${Math.round((WRITES * EVENT_CHARACTERS) / 1e6)} MB written in ${Math.round(writtenMs)} ms; cut after ${Math.round(cutMs)} ms ` +
        `with ${readBefore} events read; the server grew from ${Math.round(before)} to ${Math.round(peak)} MB`,
    );
    expect(peak - before).toBeLessThan(MEMORY_LIMIT_MB);
    await Promise.all([fast.stop(), resumed.close(), steady.close()]);
  },
);

test(
  'clients that ask for the whole state and do not read it hold up nobody but others of their kind',
  { timeout: 60_000 },
  async () => {
    const { baseUrl } = instance;
    const live = startResumingWatcher({ baseUrl: () => baseUrl, token: tenant.token, tenants: tenant.tenant });
    await live.ready;
    // More than the network holds.
    const large = startWriters({ baseUrl: () => baseUrl, ...tenant, text: 'x'.repeat(EVENT_CHARACTERS) });
    await large.more(80);
    await large.stop();
    const before = await memoryMb();
    const asked = await Promise.all(Array.from({ length: STALLED_READERS }, askForState));
    const refused = asked.filter((reader) => typeof reader === 'string');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(STALLED_READERS);
    for (const message of refused) expect(message).toMatch(/^Error: (?:429|503): .*"retryAfterSeconds":\d/);

    // One who asks for something else gets it.
    const other = await openSse(`${baseUrl}/watch/v1/events?initial=true&tenants=${tenant.tenant}`, {
      token: tenant.token,
    });
    await other.waitFor(({ event }) => event === 'BOOKMARK');
    await other.close();
    const writers = startWriters({ baseUrl: () => baseUrl, ...tenant, count: 2 });
    await writers.more(200);
    await writers.stop();
    await expectDelivered(live, [...large.acknowledged, ...writers.acknowledged], 2_000);
    expect([writers.refusals, writers.broken]).toEqual([[], 0]);
    expect((await fetch(`${instance.opsUrl}/readyz`)).status).toBe(200);
    const grewMb = (await memoryMb()) - before;
    console.log(
      `beside ${STALLED_READERS - refused.length} stalled readers of the state (${refused.length} refused): slowest write ${Math.round(writers.slowestMs)} ms, the server grew by ${Math.round(grewMb)} MB`,
    );
    expect(grewMb).toBeLessThan(MEMORY_LIMIT_MB);
    await live.stop();
    for (const reader of asked) if (typeof reader !== 'string') await reader.close();
  },
);

/** Asks for the state of all tenants and reads no more than its beginning; or the refusal. */
async function askForState(): Promise<PacedReader | string> {
  const url = `${instance.baseUrl}/watch/v1/events?initial=true`;
  try {
    const reader = await openPacedReader({ url, token: tenant.token });
    reader.pause();
    return reader;
  } catch (error) {
    return String(error);
  }
}
