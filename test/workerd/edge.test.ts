/** What is peculiar to workerd: who works when nobody stays, and what a start refuses. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { wranglerProgram } from '#infra/cloudflare/dev/wrangler.ts';
import { clientOf } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { useWatches } from '#test/http/watch/world.ts';
import { openConnection } from '#test/support/prepared-database.ts';
import { noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd)('on workerd', () => {
  const edge = useEdge();
  const world = useWorld(async () => (await edge()).targets.public);
  const watches = useWatches(world);
  let sql: Sql;
  beforeAll(async () => {
    sql = connect((await edge()).databaseUrl, { applicationName: 'test' });
  });
  afterAll(() => sql.end());

  async function runCron(): Promise<void> {
    const answer = await fetch(`${(await edge()).opsUrl}/cdn-cgi/local/scheduled`);
    expect(answer.status, await answer.text()).toBe(200);
  }

  test('a write is published by the kick that follows it, long before the next cron', async () => {
    const client = await watches.open();
    const { metadata } = await createWidget(world);
    await client.waitFor(({ data }) => data.uid === metadata.uid);
  });

  test('what is written past the API is published by the next scheduled run, and by nothing before', async () => {
    const client = await watches.open();
    const name = uniqueName('raw');
    await sql`
      insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values (${world.tenant}, 'example.dev', 'Widget', ${name}, '{}')`;
    const [waiting] = await sql`select count(*)::int4 as count from plumbline.outbox`;
    expect(waiting?.['count']).toBe(1);
    await runCron();
    await client.waitFor(({ data }) => data.data?.metadata?.name === name);
  });

  test('a scheduled run publishes and reconciles before it cleans up', async () => {
    const held = openConnection((await edge()).databaseUrl);
    await held`begin`;
    try {
      // Housekeeping waits for it, until its statement is cancelled.
      await held`lock table plumbline.lease in exclusive mode`;
      const name = uniqueName('t');
      await sql`
        insert into plumbline.resource (tenant, api_group, kind, name, spec)
        values ('system', 'plumbline.dev', 'Tenant', ${name}, '{}')`;
      const cron = runCron();
      const ready = () => sql`
        select from plumbline.resource
        where name = ${name} and status @> '{"conditions": [{"type": "Ready", "status": "True"}]}'`;
      await expect.poll(async () => (await ready()).length, { timeout: 10_000 }).toBe(1);
      await expect.poll(() => sql`select from plumbline.outbox`, { timeout: 10_000 }).toEqual([]);
      await expect
        .poll(() => sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%acquire_lease%'`, {
          timeout: 10_000,
        })
        .toHaveLength(1);
      await held`rollback`;
      await cron;
    } finally {
      await held.end({ timeout: 1 });
    }
  });

  test('a kick also reconciles, and what is due later is done by an alarm', async () => {
    const name = uniqueName('t');
    expect((await world.admin.post(TENANTS, { metadata: { name } })).status).toBe(201);
    const ready = async (): Promise<unknown> =>
      (await world.admin.get(`${TENANTS}/${name}`)).body.status?.conditions?.find(
        ({ type }: { type: string }) => type === 'Ready',
      )?.status;
    await expect.poll(ready, { timeout: 10_000 }).toBe('True');
    expect((await world.admin.delete(`${TENANTS}/${name}`)).status).toBe(202);
    // Watchers have a second to read its end: no write follows that could kick.
    await expect.poll(async () => (await world.admin.get(`${TENANTS}/${name}`)).status, { timeout: 20_000 }).toBe(404);
  });

  test('runs that meet publish every event once, and in order', async () => {
    const client = await watches.open();
    const names = Array.from({ length: 60 }, (_, index) => `${uniqueName('n')}-${index}`);
    await Promise.all([
      ...names.map((name) => createWidget(world, { name })),
      ...Array.from({ length: 6 }, () => runCron()),
    ]);
    await vi.waitFor(() => {
      const seen: string[] = client.events
        .filter(({ event }) => event === 'ADDED')
        .map(({ data }) => data.data.metadata.name);
      expect(seen.toSorted()).toEqual(names.toSorted());
    }, 20_000);
    const seqs = client.events.filter(({ event }) => event === 'ADDED').map(({ data }) => BigInt(data.seq));
    expect(seqs).toEqual(seqs.toSorted((one, other) => Number(one - other)));
  });

  test('each host name takes the tokens of its own audience', async () => {
    const { targets } = await edge();
    for (const [target, other] of [
      [targets.public, 'private'],
      [targets.private, 'public'],
    ] as const) {
      const own = await clientOf(target, { roles: ['viewer'], tenants: '*' });
      expect((await own.get(TENANTS)).status).toBe(200);
      const stranger = await clientOf(target, { roles: ['viewer'], tenants: '*', audience: other });
      expectStatus(await stranger.get(TENANTS), 401, 'Unauthorized', 'another audience');
    }
  });

  test('a blocked token comes in nowhere, within seconds', async () => {
    const subject = uniqueName('s');
    const client = await clientOf(world.target, { roles: ['viewer'], tenants: '*', subject });
    const watch = await watches.open({}, { grant: { roles: ['viewer'], tenants: '*', subject } });
    expect((await client.get(TENANTS)).status).toBe(200);
    await sql`insert into plumbline.token_block (subject, reason) values (${subject}, 'stolen')`;
    await expect.poll(async () => (await client.get(TENANTS)).status, { timeout: 10_000 }).toBe(401);
    await watch.ended;
    expect(watch.events.at(-1)?.event).toBe('ERROR');
  });

  test('while the database takes no connections, requests are told so, and served again when it does', async () => {
    const { databaseUrl } = await edge();
    const login = `${new URL(databaseUrl).pathname.slice(1)}_edge`;
    expect((await world.viewer.get(world.widgets)).status).toBe(200);
    await sql.unsafe(`alter role "${login}" connection limit 0`);
    try {
      expectStatus(await world.viewer.get(world.widgets), 503, 'ServiceUnavailable');
    } finally {
      await sql.unsafe(`alter role "${login}" connection limit -1`);
    }
    expect((await world.viewer.get(world.widgets)).status).toBe(200);
  });

  test('operators ask under a host name of their own, which is nobody else’s', async () => {
    const { opsUrl, targets } = await edge();
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await fetch(opsUrl + path)).status, path).toBe(200);
      expect((await fetch(targets.public.baseUrl + path)).status, path).toBe(404);
    }
  });
});

describe.skipIf(noWorkerd)('a worker', () => {
  test('without its bindings does not start, and names all that are missing', async () => {
    const said = await startBare([]);
    for (const name of ['TOKEN_ISSUER', 'TOKEN_JWKS_URL']) expect(said).toContain(`${name} is not bound`);
  });

  test('with wrong ones does not start, and says what is allowed', async () => {
    const said = await startBare([
      'TOKEN_ISSUER:me',
      'TOKEN_JWKS_URL:https://keys.example',
      'WATCH_SHARDS:none',
      'EVENT_LOG:kafka',
      'KAFKA_BROKERS:k:9092',
      'KAFKA_SSL:true',
      'KAFKA_CLIENT_CERT_FILE:tls.crt',
      'KAFKA_CLIENT_KEY_FILE:tls.key',
    ]);
    expect(said).toContain('WATCH_SHARDS is "none"; allowed: 1 to 1000');
    expect(said).toContain(
      'KAFKA_CLIENT_CERT_FILE is "tls.crt"; allowed: nothing, for sockets of workerd send no client',
    );
  });

  test('is deployed as wrangler.jsonc has it: by a dry run, with all its bindings', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'plumbline-deploy-'));
    const args = ['deploy', '--dry-run', '--config=infra/cloudflare/wrangler.jsonc', `--outdir=${folder}`];
    const { stdout } = await promisify(execFile)(process.execPath, [wranglerProgram(), ...args], {
      env: { ...process.env, NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false' },
    });
    for (const binding of ['env.WATCH_SHARD', 'env.BACKGROUND', 'env.KAFKA_RELAY', 'env.HYPERDRIVE'])
      expect(stdout).toContain(binding);
    expect(await readdir(folder)).toContain('worker.js');
    await rm(folder, { recursive: true });
  });

  /** What wrangler says of a worker that has these variables alone. */
  async function startBare(variables: readonly string[]): Promise<string> {
    const child = spawn(
      process.execPath,
      [
        wranglerProgram(),
        'dev',
        '--config=infra/cloudflare/wrangler.jsonc',
        '--ip=127.0.0.1',
        '--port=0',
        '--inspector-port=0',
        '--show-interactive-dev-session=false',
        ...variables.map((pair) => `--var=${pair}`),
      ],
      {
        env: {
          ...process.env,
          NO_COLOR: '1',
          CLOUDFLARE_CF_FETCH_ENABLED: 'false',
          CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_HYPERDRIVE: 'postgres://a:b@127.0.0.1:1/c',
        },
      },
    );
    let said = '';
    const take = (text: string): void => {
      said += text;
      // It waits for a change of the sources then.
      if (/failed to start|Ready on/.test(said)) child.kill('SIGTERM');
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    await once(child, 'close');
    expect(said).not.toContain('Ready on');
    return said;
  }
});
