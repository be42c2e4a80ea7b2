import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { type ResumingWatcher, startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import { startWriters, type Writers } from '#test/fault/writers.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

/** How long events may stand still when one of two servers dies or freezes. */
const STANDSTILL_LIMIT_MS = 2_000;

let database: TestDatabase;
let servers: LocalInstance[];
let tenant: FaultTenant;

beforeAll(async () => {
  database = await createTestDatabase();
  servers = [await start(), await start()];
  tenant = await makeTenant(server(0));
});

afterAll(async () => {
  await Promise.all(servers.map((instance) => instance.stop()));
  await database.drop();
});

/** Each has a DATA_DIR, and so keys, of its own. */
function start(): Promise<LocalInstance> {
  return startLocalInstance({ databaseUrl: database.url });
}

function server(index: number): LocalInstance {
  const instance = servers[index];
  if (!instance) throw new Error(`there is no server ${index}`);
  return instance;
}

async function tokenOf(index: number): Promise<string> {
  return server(index).token({ roles: ['admin'], tenants: '*', ttlSeconds: 3600 });
}

async function watch(index: number): Promise<ResumingWatcher> {
  const { baseUrl } = server(index);
  const watcher = startResumingWatcher({ baseUrl: () => baseUrl, token: await tokenOf(index), tenants: tenant.tenant });
  await watcher.ready;
  return watcher;
}

async function writeOn(index: number, pauseMs = 5): Promise<Writers> {
  const { baseUrl } = server(index);
  return startWriters({
    baseUrl: () => baseUrl,
    token: await tokenOf(index),
    tenant: tenant.tenant,
    count: 2,
    pauseMs,
  });
}

/** The longest time without an event, from a moment on. */
function longestStandstillMs({ events }: ResumingWatcher, sinceMs: number): number {
  const times = [sinceMs, ...events.map(({ atMs }) => atMs).filter((atMs) => atMs > sinceMs)];
  return Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? atMs)));
}

describe('two servers on one database', () => {
  test('a write on either reaches the watchers of both, in the same order', async () => {
    const watchers = [await watch(0), await watch(1)];
    const writers = [await writeOn(0, 0), await writeOn(1, 0)];
    await Promise.all(writers.map((each) => each.more(150)));
    await Promise.all(writers.map((each) => each.stop()));
    const acknowledged = writers.flatMap((each) => each.acknowledged);
    for (const watcher of watchers) await expectDelivered(watcher, acknowledged);
    const [first, second] = watchers.map(({ events }) => events.map(({ id }) => id));
    expect(first).toEqual(second);
    await Promise.all(watchers.map((watcher) => watcher.stop()));
  });

  test('a client goes from one to the other with its last event id, again and again', async () => {
    const tokens = [await tokenOf(0), await tokenOf(1)];
    const writers = await writeOn(0);
    const seen: bigint[] = [];
    let lastEventId = '';
    for (let turn = 0; turn < 12; turn++) {
      const response = await fetch(`${server(turn % 2).baseUrl}/watch/v1/events?tenants=${tenant.tenant}`, {
        headers: { Authorization: `Bearer ${tokens[turn % 2]}`, 'Last-Event-ID': lastEventId },
      });
      for await (const [, id = '', seq] of frames(response)) {
        lastEventId = id;
        if (seq !== undefined) seen.push(BigInt(seq));
        if (seen.length >= (turn + 1) * 10) break;
      }
    }
    await writers.stop();
    const [start = 0n] = seen;
    expect(seen).toEqual(seen.map((_, index) => start + BigInt(index)));
    expect(seen.length).toBeGreaterThanOrEqual(120);
  });

  test('when one is frozen, the other goes on publishing within 2 s, and nothing comes twice when it wakes', async () => {
    // Whichever of them publishes, it is frozen once.
    for (const frozen of [0, 1]) {
      const other = 1 - frozen;
      const watchers = [await watch(other), await watch(frozen)];
      const writers = await writeOn(other);
      await writers.more(50);
      server(frozen).process.kill('SIGSTOP');
      const sinceMs = performance.now();
      try {
        await writers.more(300);
        const [watcher] = watchers;
        const newest = writers.acknowledged.at(-1);
        await watcher?.until(
          ({ uid, resourceVersion }) => uid === newest?.uid && resourceVersion >= newest.resourceVersion,
        );
      } finally {
        server(frozen).process.kill('SIGCONT');
      }
      await writers.more(50);
      await writers.stop();
      for (const watcher of watchers) await expectDelivered(watcher, writers.acknowledged);
      const [standstillMs = 0] = watchers.map((watcher) => longestStandstillMs(watcher, sinceMs));
      console.log(`server ${frozen} frozen: events stood still for ${Math.round(standstillMs)} ms at most`);
      expect(standstillMs).toBeLessThan(STANDSTILL_LIMIT_MS);
      await Promise.all(watchers.map((watcher) => watcher.stop()));
    }
  });

  test('when one is killed, the other goes on publishing within 2 s', async () => {
    for (const killed of [0, 1]) {
      const other = 1 - killed;
      const watcher = await watch(other);
      const writers = await writeOn(other);
      await writers.more(50);
      server(killed).process.kill('SIGKILL');
      await server(killed).process.exit;
      const sinceMs = performance.now();
      await writers.more(200);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged);
      const standstillMs = longestStandstillMs(watcher, sinceMs);
      console.log(`server ${killed} killed: events stood still for ${Math.round(standstillMs)} ms at most`);
      expect(standstillMs).toBeLessThan(STANDSTILL_LIMIT_MS);
      await watcher.stop();
      await server(killed).stop();
      servers[killed] = await start();
    }
  });
});

/** Type, id and seq of each frame, until the reader has enough. */
async function* frames({ body }: Response): AsyncGenerator<readonly (string | undefined)[]> {
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const complete = text.split('\n\n');
    text = complete.pop() ?? '';
    for (const frame of complete) {
      const match = /^event: (\w+)\nid: (.+)\n.*?(?:"seq":"(\d+)".*)?$/s.exec(frame);
      if (match) yield match.slice(1);
    }
  }
}
