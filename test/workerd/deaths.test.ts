/** workerd is killed while it works, and so are single objects of it. What was answered is kept, and delivered once. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { expectDelivered } from '#test/fault/delivery.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { type Answer, clientOf } from '#test/http/client.ts';
import { TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { openConnection } from '#test/support/prepared-database.ts';
import { EDGE, noWorkerd, startEdge, useEdge } from '#test/workerd/edge.ts';
import { descendantsOf, killWorkerd } from '#test/workerd/workerd-process.ts';

const ROUNDS = 3;
const WRITES_PER_ROUND = 60;
const RESTART_LIMIT_MS = 60_000;
/** Cron runs at the start of an edge, and a minute later. */
const BEFORE_CRON_MS = 45_000;

describe.skipIf(noWorkerd)('on workerd', () => {
  const edge = useEdge();

  test(`over ${ROUNDS} times kill -9 under load, watchers that resume see every answered write once and in order, and what was to be reconciled is`, async () => {
    const { targets, pid } = await edge();
    const { baseUrl } = targets.public;
    const { tenant, token } = await makeTenant(targets.public);
    const admin = await clientOf(targets.public, { roles: ['admin'], tenants: '*' });
    const watcher = { baseUrl: () => baseUrl, token };
    const ofOne = startResumingWatcher({ ...watcher, tenants: tenant });
    const ofAll = startResumingWatcher(watcher);
    await Promise.all([ofOne.ready, ofAll.ready]);
    const writers = startWriters({ baseUrl: () => baseUrl, token, tenant });
    const kept: string[] = [];
    const removed: string[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      await writers.more(WRITES_PER_ROUND, RESTART_LIMIT_MS);
      for (const names of [kept, removed]) {
        const name = uniqueName('t');
        await untilAnswered(() => admin.post(TENANTS, { metadata: { name } }));
        names.push(name);
      }
      // It is being deleted, published and reconciled when all of it dies.
      await untilAnswered(() => admin.delete(`${TENANTS}/${removed.at(-1)}`));
      await killWorkerd(pid, 'worker');
    }
    await writers.more(WRITES_PER_ROUND, RESTART_LIMIT_MS);
    await writers.stop();
    for (const watcher of [ofOne, ofAll]) await expectDelivered(watcher, writers.acknowledged);
    for (const name of kept) {
      await expect.poll(async () => readyOf(await admin.get(`${TENANTS}/${name}`)), { timeout: 30_000 }).toBe('True');
    }
    for (const name of removed) {
      await expect
        .poll(async () => (await admin.get(`${TENANTS}/${name}`)).status, { timeout: 90_000, interval: 500 })
        .toBe(404);
    }
    expect(ofOne.connections).toBeGreaterThan(ROUNDS);
    await Promise.all([ofOne.stop(), ofAll.stop()]);
    console.log(`${writers.acknowledged.length} writes answered, ${writers.broken} connections broken`);
  });

  test('after a kill -9 what was written is published, and objects whose passes died are reconciled, without anybody’s request', async () => {
    const edge = await startEdge();
    const sql = openConnection(edge.databaseUrl);
    const away = openConnection(edge.databaseUrl);
    try {
      const admin = await clientOf(edge.targets.public, { roles: ['admin'], tenants: '*' });
      // Runs that have begun stand still: neither a batch nor a claim gets through.
      await away`begin`;
      await away`lock table plumbline.event_log, plumbline.pass_lease in share row exclusive mode`;
      const names = Array.from({ length: 12 }, () => uniqueName('t'));
      for (const name of names) expect((await admin.post(TENANTS, { metadata: { name } })).status).toBe(201);
      await killWorkerd(edge.pid, 'worker');
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like 'plumbline edge%' and datname = current_database()`;
      const died = await away`
        select from plumbline.claim_passes(array(select name from plumbline.controller), 'it died', '15 seconds', 3, '')`;
      expect(died.length).toBe(3);
      await away`commit`;
      const unready = () => sql`
        select name from plumbline.resource
        where name = any (${names}::text[]) and not status @> '{"conditions": [{"type": "Ready", "status": "True"}]}'`;
      expect((await unready()).length).toBe(names.length);
      await expect.poll(unready, { timeout: BEFORE_CRON_MS, interval: 200 }).toEqual([]);
      await expect.poll(() => sql`select from plumbline.outbox`, { timeout: 5_000 }).toEqual([]);
    } finally {
      await Promise.all([sql.end({ timeout: 1 }), away.end({ timeout: 1 })]);
      await edge.stop();
    }
  });

  test('kill -9 of the workerd in front is noticed: requests are told to come again, and are served again', async () => {
    const { targets, pid } = await edge();
    const viewer = await clientOf(targets.public, { roles: ['viewer'], tenants: '*' });
    expect((await viewer.get(TENANTS)).status).toBe(200);
    await killWorkerd(pid, 'front');
    await vi.waitFor(async () => expect((await viewer.get(TENANTS)).status).toBe(200), {
      timeout: RESTART_LIMIT_MS,
      interval: 200,
    });
  });

  test('kill -9 of npm run edge leaves no process behind; started again with more shards, a watcher resumes where it was', async () => {
    const database = await createTestDatabase();
    const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-edge-'));
    const start = (env: Readonly<Record<string, string>> = {}): Promise<LocalInstance> =>
      startLocalInstance({ program: EDGE, databaseUrl: database.url, dataDir, env });
    let instance = await start();
    try {
      const { tenant, token } = await makeTenant(instance);
      const watcher = startResumingWatcher({ baseUrl: () => instance.baseUrl, token, tenants: tenant });
      await watcher.ready;
      const writers = startWriters({ baseUrl: () => instance.baseUrl, token, tenant });
      await writers.more(WRITES_PER_ROUND);
      const family = await descendantsOf(instance.process.pid);
      expect(family.filter(({ command }) => command.includes('workerd serve ')).length).toBe(2);
      instance.process.kill('SIGKILL');
      await instance.process.exit;
      await expect.poll(() => family.filter(({ pid }) => isAlive(pid)), { timeout: 20_000 }).toEqual([]);
      instance = await start({ WATCH_SHARDS: '3' });
      await writers.more(WRITES_PER_ROUND, RESTART_LIMIT_MS);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged);
      await watcher.stop();
    } finally {
      await instance.stop();
      await database.drop();
      await rm(dataDir, { recursive: true });
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A client asks again; what was made by an answer that was lost is there. */
async function untilAnswered(ask: () => Promise<Answer>): Promise<void> {
  await vi.waitFor(
    async () => {
      const { status, text } = await ask();
      expect([200, 201, 202, 404, 409], text).toContain(status);
    },
    { timeout: RESTART_LIMIT_MS, interval: 200 },
  );
}

function readyOf({ body }: Answer): unknown {
  return body.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready')?.status;
}
