/** What callers and operators meet when the platform, the database or a client misbehaves. Over three shards. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { shardOf } from '#infra/cloudflare/shards.ts';
import { expectDelivered } from '#test/fault/delivery.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { type Answer, clientOf, clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { ACKS, statusOf } from '#test/http/watch-groups/world.ts';
import { EVERYONE, useWatches, watchUrl } from '#test/http/watch/world.ts';
import { SseRefused } from '#test/support/sse-client.ts';
import { BREAK } from '#test/workerd/break-header.ts';
import { noWorkerd, useEdge } from '#test/workerd/edge.ts';

const ORIGIN = 'https://app.example';
const SHARDS = 3;
const AT_ONCE = 32;
/** Isolates tell every few seconds what they counted. */
const TOLD = { timeout: 20_000, interval: 200 };

describe.skipIf(noWorkerd)('on workerd', () => {
  const edge = useEdge(async () => ({
    WATCH_SHARDS: String(SHARDS),
    CORS_ORIGINS: ORIGIN,
    TENANT_REQUESTS_AT_ONCE: String(AT_ONCE),
    KINDS: './test/workerd/breakable-kinds.ts',
  }));
  const world = useWorld(async () => (await edge()).targets.public);
  const watches = useWatches(world);
  let sql: Sql;
  let login: string;
  beforeAll(async () => {
    const { databaseUrl } = await edge();
    sql = connect(databaseUrl, { applicationName: 'test' });
    login = `${new URL(databaseUrl).pathname.slice(1)}_edge`;
  });
  afterAll(() => sql.end());

  /** The sum of a metric's series that match. */
  async function metric(series: RegExp): Promise<number> {
    const answer = await fetch(`${(await edge()).opsUrl}/metrics`);
    const lines = (await answer.text()).split('\n').filter((line) => series.test(line));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  const shardFor = (tenants: string): Promise<string> =>
    shardOf(new URL(`http://x/?tenants=${tenants}`), { shardCount: SHARDS } as EdgeConfig);

  /** Has one of the worker's objects evicted. */
  async function breakOff(what: 'shard' | 'background', tenants: string): Promise<Response> {
    const headers = { [BREAK]: what, Authorization: `Bearer ${await world.target.token(EVERYONE)}` };
    return fetch(watchUrl(world.target.baseUrl, { tenants }), { headers });
  }

  describe('limits', () => {
    test('a tenant over its requests is told 429 and when to come back, others are served, and refusals are counted', async () => {
      const name = uniqueName('t');
      await world.admin.post(TENANTS, { metadata: { name }, spec: { quota: { requestsPerSecond: 2 } } });
      const viewer = await clientOf(world.target, { roles: ['viewer'], tenants: [name] });
      const path = `/apis/example.dev/v1/namespaces/${name}/widgets`;
      // Isolates read quotas every two seconds.
      const ask = async () => Promise.all(Array.from({ length: 10 }, () => viewer.get(path)));
      await expect.poll(async () => (await ask()).map(({ status }) => status), { timeout: 15_000 }).toContain(429);
      const refused = (await ask()).find(({ status }) => status === 429)!;
      expectStatus(refused, 429, 'TooManyRequests', /more than 2 requests per second/);
      expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0);
      expect((await world.viewer.get(world.widgets)).status).toBe(200);
      await expect.poll(() => metric(/^plumbline_refused_by_limit_total\{limit="requests"\}/), TOLD).toBeGreaterThan(0);
      await expect.poll(() => metric(/duration_seconds_count\{method="GET",code="429"\}/), TOLD).toBeGreaterThan(0);
      expect(await metric(/duration_seconds_count\{method="GET",code="200"\}/)).toBeGreaterThan(0);
    });

    test('a tenant with too many requests open is told 429 before it uses up the connections, and others are served', async () => {
      const { tenant, token } = await makeTenant(world.target);
      const flooder = clientWith(world.target.baseUrl, `Bearer ${token}`);
      const refused = await metric(/^plumbline_refused_by_limit_total\{limit="requests"\}/);
      // Room for the tenant's, those that end, the background's, and another caller's.
      await sql.unsafe(`alter role "${login}" connection limit ${AT_ONCE * 2 + 20}`);
      const path = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
      const answers: Answer[] = [];
      const others: number[] = [];
      try {
        const flood = Array.from({ length: 200 }, async () => {
          for (let count = 0; count < 4; count++) {
            answers.push(await flooder.get(path));
          }
        });
        let isOver = false;
        const flooded = Promise.all(flood).finally(() => (isOver = true));
        while (!isOver) others.push((await world.viewer.get(world.widgets)).status);
        await flooded;
      } finally {
        await sql.unsafe(`alter role "${login}" connection limit -1`);
      }
      expect(new Set(others)).toEqual(new Set([200]));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
      const one = answers.find(({ status }) => status === 429)!;
      expectStatus(one, 429, 'TooManyRequests', /^tenant "[^"]+" has 32 requests open/);
      expect(one.headers.get('Retry-After')).toBe('1');
      await expect
        .poll(() => metric(/^plumbline_refused_by_limit_total\{limit="requests"\}/), TOLD)
        .toBeGreaterThan(refused);
      // All places were given back.
      const after = await Promise.all(Array.from({ length: AT_ONCE }, () => flooder.get(path)));
      expect(new Set(after.map(({ status }) => status))).toEqual(new Set([200]));
    });

    test('who goes away before the answer gives its places back', async () => {
      const { tenant, token } = await makeTenant(world.target);
      const path = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
      const headers = { Authorization: `Bearer ${token}` };
      const left = new AbortController();
      const leaving = Array.from({ length: AT_ONCE }, () =>
        fetch(world.target.baseUrl + path, { headers, signal: left.signal }),
      );
      await Promise.any(leaving);
      left.abort();
      await Promise.allSettled(leaving);
      const client = clientWith(world.target.baseUrl, `Bearer ${token}`);
      const side = () => Promise.all(Array.from({ length: AT_ONCE }, () => client.get(path)));
      await expect.poll(async () => (await side()).map(({ status }) => status), { timeout: 15_000 }).not.toContain(429);
    });

    test('a tenant over its watchers is told 429 and when to come back, and gets in when one has left', async () => {
      const name = uniqueName('t');
      await world.admin.post(TENANTS, { metadata: { name }, spec: { quota: { watchers: 1 } } });
      const grant = { roles: ['viewer'], tenants: [name] } as const;
      const first = await watches.open({ tenants: name }, { grant });
      const refused = await watches.refused({ tenants: name }, { grant });
      expect([refused.status, refused.body.reason]).toEqual([429, 'TooManyRequests']);
      expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0);
      expect(await metric(/^plumbline_refused_by_limit_total\{limit="watchers"\}/)).toBeGreaterThan(0);
      await first.close();
      await expect
        .poll(() => watches.open({ tenants: name }, { grant }).catch((error: unknown) => error), { timeout: 15_000 })
        .not.toBeInstanceOf(SseRefused);
    });
  });

  describe('shards', () => {
    test('watchers of one tenant, of another shard’s and of all see the same event', async () => {
      const others = await tenantsOfOtherShards(world.tenant);
      const clients = await Promise.all([
        watches.open({ tenants: world.tenant }),
        watches.open({ tenants: [world.tenant, ...others].join(',') }, { grant: EVERYONE }),
        watches.open({}, { grant: EVERYONE }),
      ]);
      const { metadata } = await createWidget(world);
      await Promise.all(clients.map((client) => client.waitFor(({ data }) => data.uid === metadata.uid)));
    });

    test('an ack is taken at a shard that has not the member, which is sent what follows', async () => {
      // Acks name no tenants.
      const elsewhere = await shardFor('');
      const tenant = await tenantWhere(async (name) => (await shardFor(name)) !== elsewhere);
      const grant = { roles: ['editor'], tenants: [tenant], subject: uniqueName('s') } as const;
      const member = await clientOf(world.target, grant);
      const path = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
      expect((await member.post(path, { metadata: { name: 'one' }, spec: {} })).status).toBe(201);
      expect((await member.patch(`${path}/one`, { spec: { size: 1 } })).status).toBe(200);
      const client = await watches.open({ tenants: tenant, group: 'g', window: '1' }, { grant });
      const first = await client.waitFor(({ event }) => event === 'ADDED');
      expect(statusOf(await member.post(ACKS, { acks: [first.id] }))).toBe('Acked');
      const second = await client.waitFor(({ event }) => event === 'MODIFIED');
      expect(second.data.data.spec.size).toBe(1);
    });
  });

  test('strangers wake no shard: they are refused before it, and told why on their page', async () => {
    const answer = await fetch(watchUrl(world.target.baseUrl), {
      headers: { [BREAK]: 'shard', Origin: ORIGIN },
    });
    expect([answer.status, answer.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer realm="plumbline"']);
    expect(answer.headers.get('Access-Control-Allow-Origin')).toBe(ORIGIN);
    expect(await answer.json()).toMatchObject({
      reason: 'Unauthorized',
      message: expect.stringContaining('a token is needed'),
    });
  });

  describe('an evicted object', () => {
    test('of watches: its callers are told to come again, its watchers resume without loss, other shards notice nothing', async () => {
      const { tenant, token } = await makeTenant(world.target);
      const other = await tenantWhere(async (name) => (await shardFor(name)) !== (await shardFor(tenant)));
      const beside = await watches.open({ tenants: other }, { grant: EVERYONE });
      const watcher = startResumingWatcher({ baseUrl: () => world.target.baseUrl, token, tenants: tenant });
      await watcher.ready;
      const writers = startWriters({ baseUrl: () => world.target.baseUrl, token, tenant, count: 2 });
      await writers.more(20);
      const answer = await breakOff('shard', tenant);
      expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '1']);
      expect(await answer.json()).toMatchObject({
        reason: 'ServiceUnavailable',
        message: expect.stringMatching(/^the watch shard watch-\d broke off/),
      });
      await writers.more(20);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged);
      expect([watcher.connections, writers.refusals.length, writers.broken, beside.isEnded]).toEqual([2, 0, 0, false]);
      await watcher.stop();
    });

    test('of the background: what is written then is published and reconciled all the same', async () => {
      const client = await watches.open();
      expect((await breakOff('background', world.tenant)).status).toBe(200);
      const { metadata } = await createWidget(world);
      await client.waitFor(({ data }) => data.uid === metadata.uid);
    });
  });

  describe('the database', () => {
    test('has no connections left: callers are told to come again, are counted, and what was taken is delivered by itself', async () => {
      const { tenant, token } = await makeTenant(world.target);
      const watcher = startResumingWatcher({ baseUrl: () => world.target.baseUrl, token, tenants: tenant });
      await watcher.ready;
      const writers = startWriters({ baseUrl: () => world.target.baseUrl, token, tenant, count: 24 });
      await writers.more(24);
      await sql.unsafe(`alter role "${login}" connection limit 6`);
      try {
        await expect.poll(() => writers.refusals.length, { timeout: 30_000 }).toBeGreaterThan(10);
      } finally {
        await writers.stop();
        await sql.unsafe(`alter role "${login}" connection limit -1`);
      }
      for (const { status, retryAfter, text } of writers.refusals) {
        expect([status, retryAfter], text).toEqual([503, '1']);
      }
      expect(writers.broken).toBe(0);
      // Neither cron nor another write follows.
      await expectDelivered(watcher, writers.acknowledged);
      await expect.poll(() => metric(/duration_seconds_count\{method="\w+",code="503"\}/), TOLD).toBeGreaterThan(10);
      const lines = (await edge()).log().match(/"msg":"request could not be served"/g) ?? [];
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.length).toBeLessThan(writers.refusals.length);
      await watcher.stop();
    });

    test('cannot be written to by the background for a while: it is published when it can, without cron or another write', async () => {
      const client = await watches.open();
      await sql`alter table plumbline.event_log rename to event_log_away`;
      const { metadata } = await createWidget(world);
      try {
        await expect.poll(() => metric(/^plumbline_publish_errors_total/), { timeout: 15_000 }).toBeGreaterThan(0);
      } finally {
        await sql`alter table plumbline.event_log_away rename to event_log`;
      }
      await client.waitFor(({ data }) => data.uid === metadata.uid, 30_000);
    });
  });

  test('HEAD, OPTIONS and preflights are answered as elsewhere, of watches too', async () => {
    const { baseUrl } = world.target;
    const headers = { Authorization: `Bearer ${await world.target.token(EVERYONE)}` };
    const head = await fetch(baseUrl + world.widgets, { method: 'HEAD', headers });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const options = await fetch(baseUrl + world.widgets, { method: 'OPTIONS', headers });
    expect([options.status, options.headers.get('Allow')]).toEqual([204, 'GET, HEAD, POST']);
    for (const path of [world.widgets, '/watch/v1/events']) {
      const preflight = await fetch(baseUrl + path, {
        method: 'OPTIONS',
        headers: { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' },
      });
      expect([preflight.status, preflight.headers.get('Access-Control-Allow-Origin')], path).toEqual([204, ORIGIN]);
    }
  });

  test('what is said of a database that is not set up names it, and is no fault of ours', async () => {
    const { targets, opsUrl } = await edge();
    await sql`alter table plumbline.migration rename to migration_away`;
    try {
      // Whoever runs already goes on; a shard that begins, or an isolate, looks.
      const readiness = await fetch(`${opsUrl}/readyz`);
      expect(readiness.status).toBe(503);
      expect(await readiness.text()).toContain('the database has no schema: npm run set-up makes it');
      await breakOff('shard', 'system');
      const headers = { Authorization: `Bearer ${await world.target.token(EVERYONE)}` };
      const answer = await fetch(watchUrl(targets.public.baseUrl, { tenants: 'system' }), { headers });
      expect(answer.status).toBe(503);
      expect(await answer.text()).toContain('the database has no schema: npm run set-up makes it');
    } finally {
      await sql`alter table plumbline.migration_away rename to migration`;
    }
    expect((await world.viewer.get(world.widgets)).status).toBe(200);
  });

  async function tenantWhere(isWanted: (name: string) => Promise<boolean>): Promise<string> {
    for (;;) {
      const name = uniqueName('t');
      if (!(await isWanted(name))) continue;
      expect((await world.admin.post(TENANTS, { metadata: { name } })).status).toBe(201);
      return name;
    }
  }

  async function tenantsOfOtherShards(tenant: string): Promise<readonly string[]> {
    const own = await shardFor(tenant);
    return [await tenantWhere(async (name) => (await shardFor([tenant, name].toSorted().join(','))) !== own)];
  }
});
