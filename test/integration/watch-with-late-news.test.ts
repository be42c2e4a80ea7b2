import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openSse, type SseClient, type SseEvent } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

let database: PreparedDatabase;
let sql: Sql;
let server: WatchServer;

beforeAll(async () => {
  database = await prepareDatabase([]);
  ({ sql } = database);
  server = await startWatchServer(sql);
});

afterAll(async () => {
  await server.stop();
  await database.close();
});

test('a watch from a list that is newer than what its process knows never steps back, from whichever event it resumes', async () => {
  const tenants = ['ahead', 'level'];
  await createTenants(sql, tenants);
  const early = await open(server, tenants);
  await write('ahead', 'one', 'two', 'three');
  await publish();
  const watcher = await open(server, tenants, { from: await listCursor(tenants) });
  await write('level', 'four', 'five');
  await publish();
  server.tellOfEvents(await streamOf('level'));
  await watcher.waitFor(isAbout('five'));
  server.tellOfEvents(await streamOf('ahead'));
  await write('ahead', 'six');
  await publish();
  server.tellOfEvents(await streamOf('ahead'));
  await watcher.waitFor(isAbout('six'));
  expect(storyOf(watcher)).toEqual(['ADDED four', 'ADDED five', 'ADDED six']);

  for (const [index, name] of ['four', 'five'].entries()) {
    const { id = '' } = watcher.events.find(isAbout(name)) ?? {};
    const resumed = await open(server, tenants, { from: id });
    const rest = storyOf(watcher).slice(index + 1);
    await resumed.waitFor(() => storyOf(resumed).length === rest.length);
    expect(storyOf(resumed).toSorted()).toEqual(rest.toSorted());
    await resumed.close();
  }
  await Promise.all([early.close(), watcher.close()]);
});

test('a watch of all that begins before its process has heard of a new tenant shows that one, and not its end', async () => {
  const early = await open(server, '*');
  await createTenants(sql, ['newborn']);
  await write('newborn', 'first');
  await publish();
  const watcher = await open(server, '*');
  await write('newborn', 'second');
  await publish();
  server.tellOfStreams();
  server.tellOfEvents();
  await watcher.waitFor(isAbout('second'));
  await early.waitFor(() => storyOf(early).length === 3);
  expect(storyOf(watcher)).toEqual(['ADDED second']);
  // In two streams, of which none waits for the other.
  expect(storyOf(early).toSorted()).toEqual(['ADDED first', 'ADDED newborn', 'ADDED second']);
  await Promise.all([early.close(), watcher.close()]);
});

test('a watch that resumes in another process gets the last events of a deleted tenant, which are not published yet, and then its end', async () => {
  await createTenants(sql, ['mortal']);
  await write('mortal', 'child');
  await publish();
  const early = await open(server, '*');
  await sql`delete from plumbline.resource where tenant = 'mortal'`;
  await sql`delete from plumbline.resource where kind = 'Tenant' and name = 'mortal'`;
  const other = await startWatchServer(sql);
  const resumed = await open(other, '*', { from: early.lastEventId });
  await publish();
  other.tellOfEvents();
  await resumed.waitFor(isAbout('child'));
  other.tellOfStreams();
  await resumed.waitFor(({ data }) => data.reason === 'TenantGone');
  // The Tenant object's own event is in another stream, which may be later.
  const story = ['BOOKMARK mortal', 'DELETED child', 'DELETED mortal'];
  await expect.poll(() => storyOf(resumed).toSorted(), { timeout: 10_000 }).toEqual(story);
  await Promise.all([early.close(), resumed.close()]);
  await other.stop();
});

async function open(
  { baseUrl, token }: WatchServer,
  tenants: '*' | readonly string[],
  query: Readonly<Record<string, string>> = {},
): Promise<SseClient> {
  const named = tenants === '*' ? {} : { tenants: tenants.join(',') };
  const address = `${baseUrl}/watch/v1/events?${new URLSearchParams({ ...named, ...query }).toString()}`;
  const client = await openSse(address, { token: await token(tenants) });
  await client.waitFor(({ event }) => event === 'READY');
  return client;
}

async function write(tenant: string, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values (${tenant}, 'example.dev', 'Widget', ${name})`;
  }
}

async function publish(): Promise<void> {
  await publishOnce({ outbox: postgresOutbox(sql) });
}

async function listCursor(tenants: readonly string[]): Promise<string> {
  const params = { group: 'example.dev', kind: 'Widget', labels: [], limit: 100 };
  const { head } = await postgresResources(sql).list({ tenants }, params);
  if (!head) throw new Error('the list has no head');
  return server.cursors.seal(head, 'public', tenants);
}

async function streamOf(tenant: string): Promise<bigint> {
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
  if (!row) throw new Error(`no stream of ${tenant}`);
  return row.id;
}

function isAbout(name: string): (event: SseEvent) => boolean {
  return ({ data }) => data.data?.metadata.name === name;
}

/** `ADDED blue`, `BOOKMARK red` for a tenant that is gone; in order. */
function storyOf(client: SseClient): string[] {
  return client.events
    .filter(({ event }) => event !== 'READY')
    .map(({ event, data }) => `${event} ${data.data?.metadata.name ?? data.tenant}`);
}
