/** What the black-box suite of watch cannot bring about: raw SQL, retention, keys that were retired, a restored database. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { openSession } from '#adapters/postgres/session.ts';
import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import {
  changesOf,
  createTenant,
  EVERYONE,
  expectFailure,
  type OtherTenant,
  settle,
  storyOf,
  useWatches,
} from '#test/http/watch/world.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

let database: TestDatabase | undefined;
let dataDir: string | undefined;
let starting: Promise<LocalInstance> | undefined;
let sql: Sql;

const world = useWorld(start);
const watches = useWatches(world);

async function start(): Promise<LocalInstance> {
  database ??= await createTestDatabase();
  dataDir ??= await mkdtemp(join(tmpdir(), 'plumbline-beside-sql-'));
  starting ??= startLocalInstance({ databaseUrl: database.url, dataDir });
  return starting;
}

beforeAll(async () => {
  await start();
  sql = connect(database?.url ?? '', { applicationName: 'test' });
});

afterAll(async () => {
  await sql.end();
  await (await starting)?.stop();
  await database?.drop();
  if (dataDir) await rm(dataDir, { recursive: true });
});

describe('what raw SQL writes', () => {
  test('comes as what the API writes does', async () => {
    const client = await watches.open();
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, labels, spec)
      values (${world.tenant}, 'example.dev', 'Widget', 'raw', '{"a": "b"}', '{"size": 1}')`;
    await sql`update plumbline.resource set spec = '{"size": 2}' where name = 'raw'`;
    const { body } = await world.viewer.get(world.widget('raw'));
    await sql`update plumbline.resource set spec = '{"size": 2}' where name = 'raw'`;
    await sql`delete from plumbline.resource where name = 'raw'`;
    await client.waitFor(({ event }) => event === 'DELETED');
    expect(storyOf(client)).toEqual(['ADDED raw', 'MODIFIED raw', 'DELETED raw']);
    expect(changesOf(client)[1]?.data.data).toEqual(body);
  });

  test('in one transaction comes with its id and its trace, and not at all when it is rolled back', async () => {
    const client = await watches.open();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const session = openSession(database?.url ?? '', { applicationName: 'test transaction' });
    for (const [prefix, end] of [
      ['never', 'rollback'],
      ['once', 'commit'],
    ] as const) {
      await session.sql`begin`;
      await session.sql`select set_config('plumbline.traceparent', ${traceparent}, true)`;
      await session.sql`insert into plumbline.resource (tenant, api_group, kind, name)
        select ${world.tenant}, 'example.dev', 'Widget', ${prefix} || n from generate_series(1, 3) n`;
      await session.sql.unsafe(end);
    }
    await session.close();
    await client.waitFor(({ data }) => data.subject === 'example.dev/Widget/once3');
    expect(storyOf(client)).toEqual(['ADDED once1', 'ADDED once2', 'ADDED once3']);
    const changes = changesOf(client).map(({ data }) => data);
    expect(new Set(changes.map(({ txid }) => txid)).size).toBe(1);
    expect(changes.map((data) => data.traceparent)).toEqual(Array(3).fill(traceparent));
  });
});

describe('what a transaction writes', () => {
  test('that began before another one and commits after it comes behind that one, to live watchers and to who resumes in between', async () => {
    const live = await watches.open();
    const session = openSession(database?.url ?? '', { applicationName: 'test transaction' });
    await session.sql`begin`;
    await session.sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values (${world.tenant}, 'example.dev', 'Widget', 'slow')`;
    await createWidget(world, { name: 'quick' });
    const { id = '' } = await live.waitFor(({ data }) => data.data?.metadata.name === 'quick');
    const resumed = await watches.open({ from: id });
    await session.sql`commit`;
    await session.close();
    for (const client of [live, resumed]) await client.waitFor(({ data }) => data.data?.metadata.name === 'slow');
    expect([storyOf(live), storyOf(resumed)]).toEqual([['ADDED quick', 'ADDED slow'], ['ADDED slow']]);
    const [quick, slow] = changesOf(live).map(({ data }) => data);
    // It took its version first: only the stream's own order counts.
    expect(BigInt(slow.resourceversion)).toBeLessThan(BigInt(quick.resourceversion));
  });

  test('comes next behind a thousand that were rolled back', async () => {
    const client = await watches.open();
    const session = openSession(database?.url ?? '', { applicationName: 'test transaction' });
    for (let count = 0; count < 1_000; count++) {
      await session.sql.unsafe(`begin; insert into plumbline.resource (tenant, api_group, kind, name)
        values ('${world.tenant}', 'example.dev', 'Widget', 'gone-${count}'); rollback`);
    }
    await session.close();
    const widget = await createWidget(world);
    const { data } = await client.next();
    expect(data.uid).toBe(widget.metadata.uid);
  });
});

describe('a watch of a kind of which nothing changes', () => {
  test('resumes from its last bookmark when retention has removed everything since it began', async () => {
    const tenant = await createTenant(world);
    const query = { tenants: tenant.name, kinds: 'Vault' };
    const idle = await watches.open(query, { grant: EVERYONE });
    const began = idle.lastEventId;
    const busy = await watches.open({ tenants: tenant.name }, { grant: EVERYONE });
    for (const name of ['one', 'two', 'three']) await world.admin.post(tenant.widgets, { metadata: { name } });
    await busy.waitFor(({ data }) => data.data?.metadata.name === 'three');
    const { id: bookmark = '' } = await idle.waitFor(({ event }) => event === 'BOOKMARK', 20_000);
    await idle.close();
    await expireEvents(sql, tenant.name, 3);
    expectFailure((await watches.refused({ ...query, from: began }, { grant: EVERYONE })).body, 410, 'Expired');
    const resumed = await watches.open(query, { grant: EVERYONE, lastEventId: bookmark });
    await world.admin.post(`/apis/example.dev/v1beta1/namespaces/${tenant.name}/vaults`, { metadata: { name: 'v' } });
    expect((await resumed.next()).data.data.metadata.name).toBe('v');
  });
});

describe('a cursor', () => {
  /** A tenant with three events, and the cursors before the first and behind each. */
  async function threeEvents(): Promise<{ tenant: OtherTenant; cursors: string[] }> {
    const tenant = await createTenant(world);
    const client = await watches.open({ tenants: tenant.name }, { grant: EVERYONE });
    const cursors = [client.lastEventId];
    for (const name of ['one', 'two', 'three']) {
      await world.admin.post(tenant.widgets, { metadata: { name } });
      cursors.push((await client.next()).id ?? '');
    }
    await client.close();
    return { tenant, cursors };
  }

  test('whose next event was removed by retention is refused with the earliest cursor, and one that lost nothing is not', async () => {
    const { tenant, cursors } = await threeEvents();
    const query = { tenants: tenant.name };
    await expireEvents(sql, tenant.name, 2);
    for (const from of cursors.slice(0, 2)) {
      const { status, body } = await watches.refused({ ...query, from }, { grant: EVERYONE });
      expect(status).toBe(410);
      expectFailure(body, 410, 'Expired', /list and watch from the cursor of that list/);
      const inStream = await watches.refusedInStream(query, { grant: EVERYONE, lastEventId: from });
      expectFailure(inStream.data, 410, 'Expired');
      const goingOn = await watches.open({ ...query, from: body.details.cursor }, { grant: EVERYONE });
      expect((await goingOn.next()).data.data.metadata.name).toBe('three');
    }
    for (const from of [cursors[2] ?? '', 'earliest']) {
      const client = await watches.open({ ...query, from }, { grant: EVERYONE });
      expect((await client.next()).data.data.metadata.name).toBe('three');
    }
  });

  test('that is ahead of a log which was restored from a backup is refused', async () => {
    const { tenant, cursors } = await threeEvents();
    await sql`delete from plumbline.event_log e using plumbline.stream s
      where e.stream = s.id and s.tenant = ${tenant.name} and e.seq = 3`;
    await sql`update plumbline.frontier f set last_seq = 2, last_position = 2 from plumbline.stream s
      where f.stream = s.id and s.tenant = ${tenant.name}`;
    const query = { tenants: tenant.name, from: cursors[3] ?? '' };
    const { status, body } = await watches.refused(query, { grant: EVERYONE });
    expect(status).toBe(410);
    expectFailure(body, 410, 'StreamRecreated', 'does not reach as far');
  });

  test('of a key that was retired is refused, and one of an older key that is kept is not', async () => {
    await createWidget(world);
    await settle(world);
    const tenants = world.tenant;
    const { cursor } = (await world.viewer.get(world.widgets)).body.metadata;
    await restartWithKeys(sql`insert into plumbline.cursor_key (id, key) values (1, decode(repeat('ab', 32), 'hex'))`);
    const client = await watches.open({ tenants, from: cursor });
    const widget = await createWidget(world);
    expect((await client.next()).data.uid).toBe(widget.metadata.uid);
    await client.close();

    await restartWithKeys(sql`delete from plumbline.cursor_key where id = 0`);
    const { status, body } = await watches.refused({ tenants, from: cursor });
    expect(status).toBe(410);
    expectFailure(body, 410, 'CursorKeyRetired', 'list again');
    const { data } = await watches.refusedInStream({ tenants }, { lastEventId: cursor });
    expectFailure(data, 410, 'CursorKeyRetired');
    expect(await watches.open({ tenants, from: client.lastEventId })).toBeDefined();
  });

  async function restartWithKeys(change: PromiseLike<unknown>): Promise<void> {
    await change;
    const { port } = new URL(world.target.baseUrl);
    await (await start()).stop();
    starting = startLocalInstance({ databaseUrl: database?.url ?? '', dataDir: dataDir ?? '', env: { PORT: port } });
    await starting;
  }
});
