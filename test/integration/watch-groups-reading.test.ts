import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { laneOf } from '#core/lane.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { type Client, clientWith } from '#test/http/client.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openSse, type SseClient, type SseEvent } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

/** Four times what is read of the log at once. */
const EVENTS = 1_000;

let database: PreparedDatabase;
let sql: Sql;
let first: WatchServer;
let second: WatchServer;

beforeAll(async () => {
  database = await prepareDatabase([]);
  ({ sql } = database);
  [first, second] = await Promise.all([startWatchServer(sql), startWatchServer(sql)]);
});

afterAll(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await database.close();
});

test('two hundred groups on one stream, and a watcher, have one reader of what is new', async () => {
  await createTenants(sql, ['crowded']);
  const stream = await streamOf('crowded');
  const clients = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      join(first, 'crowded', { group: `g-${index}`, start: 'now' }, `owner-${index % 4}`),
    ),
  );
  clients.push(await open(first, 'crowded', {}));
  const before = first.questions.reads.times;
  for (const names of [['one', 'two'], ['three']]) {
    await write('crowded', names);
    first.tellOfEvents(stream);
    await Promise.all(clients.map((client) => client.waitFor(isAbout(names.at(-1)))));
  }
  expect(first.tails.filter((each) => each === stream)).toHaveLength(1);
  expect(first.questions.reads.times).toBe(before);
  await Promise.all(clients.map((client) => client.close()));
});

test('lanes that are far behind are read for together, in bounded batches, and one that is full holds up no other', async () => {
  await createTenants(sql, ['behind']);
  const stream = await streamOf('behind');
  await write(
    'behind',
    Array.from({ length: EVENTS }, (_, index) => `w-${index}`),
  );
  const acks = await acksOf(first, 'behind');
  const before = first.questions.reads.times;
  const client = await join(first, 'behind', { group: 'late', window: '16' });
  const full = (await client.waitFor(({ id }) => id !== undefined)).data.lane;
  const ofFullLane = (event: SseEvent): boolean => event.data.lane === full;
  const uids = await sql<{ uid: string }[]>`select uid from plumbline.resource where tenant = 'behind'`;
  const others = uids.filter(({ uid }) => `${stream}.${laneOf(uid)}` !== full);
  let acked = 0;
  while (acked < others.length) {
    const events = client.events.filter(({ id }) => id !== undefined).filter((event) => !ofFullLane(event));
    if (events.length === acked) await client.next();
    else await acks.post('/watch/v1/acks', { acks: events.slice(acked).map(({ id }) => id) });
    acked = events.length;
  }
  expect(client.events.filter(ofFullLane)).toHaveLength(16);
  expect(first.questions.reads.times - before).toBeLessThan(EVENTS / 16);
  await client.close();
});

test('an ack is taken by any process: the one that delivers goes on, until its member leaves; then it reads no more', async () => {
  await createTenants(sql, ['apart']);
  const client = await join(first, 'apart', { group: 'apart', window: '1' });
  const acks = await acksOf(second, 'apart');
  await write('apart', ['a'], 3);
  first.tellOfEvents();
  for (const seq of ['1', '2', '3']) {
    const event = await client.waitFor(({ data }) => data.seq === seq);
    const { body } = await acks.post('/watch/v1/acks', { acks: [event.id] });
    expect(body.results).toEqual([{ status: 'Acked' }]);
  }
  await client.close();
  const stream = await streamOf('apart');
  await expect.poll(() => first.tails.includes(stream), { timeout: 10_000 }).toBe(false);
});

test('a server that stops gives its lanes back at once: members of another go on with what was not acked', async () => {
  await createTenants(sql, ['moving']);
  const third = await startWatchServer(sql);
  const leaving = await join(third, 'moving', { group: 'moving' });
  await write('moving', ['a', 'b', 'c']);
  third.tellOfEvents();
  await leaving.waitFor(isAbout('c'));
  await third.stop();
  expect(await leaving.ended).toBeUndefined();
  const [lane] = await sql`select count(m.id)::int4 as held from plumbline.group_lane l
    join plumbline.watch_group g on g.id = l.watch_group and g.name = 'moving'
    left join plumbline.group_member m on m.id = l.member`;
  expect(lane).toEqual({ held: 0 });
  const staying = await join(second, 'moving', { group: 'moving' });
  await expect.poll(() => attemptsOf(staying), { timeout: 10_000 }).toEqual({ a: 2, b: 2, c: 2 });
});

test('a member whose client takes nothing is ended, and others get all of its lanes', async () => {
  await createTenants(sql, ['stalled']);
  const third = await startWatchServer(sql, { stallMs: 500 });
  const { hostname, port } = new URL(third.baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  const token = await third.token(['stalled']);
  socket.write(
    `GET /watch/v1/events?tenants=stalled&group=stalled&window=1024 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`,
  );
  await once(socket, 'data');
  socket.pause();
  const names = Array.from({ length: 400 }, (_, index) => `w-${index}`);
  await write('stalled', names, 1, 'x'.repeat(50_000));
  third.tellOfEvents();
  const other = await join(second, 'stalled', { group: 'stalled' });
  await expect.poll(() => Object.keys(attemptsOf(other)).length, { timeout: 30_000 }).toBe(names.length);
  socket.destroy();
  await third.stop();
});

async function open(
  { baseUrl, token }: WatchServer,
  tenant: string,
  query: Readonly<Record<string, string>>,
  subject?: string,
): Promise<SseClient> {
  const address = `${baseUrl}/watch/v1/events?${new URLSearchParams({ tenants: tenant, ...query }).toString()}`;
  const client = await openSse(address, { token: await token([tenant], subject) });
  await client.waitFor(({ event }) => event === 'READY');
  return client;
}

/** Opens a member, and waits until it holds lanes. */
async function join(
  server: WatchServer,
  tenant: string,
  query: Readonly<Record<string, string>>,
  subject?: string,
): Promise<SseClient> {
  const client = await open(server, tenant, query, subject);
  const stream = await streamOf(tenant);
  await expect.poll(() => server.tails.includes(stream), { timeout: 10_000 }).toBe(true);
  return client;
}

async function acksOf({ baseUrl, token }: WatchServer, tenant: string): Promise<Client> {
  return clientWith(baseUrl, `Bearer ${await token([tenant])}`);
}

/** Objects, and so many events of each; published. */
async function write(tenant: string, names: readonly string[], events: number = 1, pad: string = ''): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select ${tenant}, 'example.dev', 'Widget', name, jsonb_build_object('pad', ${pad}::text) from unnest(${[...names]}::text[]) name`;
  for (let size = 1; size < events; size += 1) {
    await sql`update plumbline.resource set spec = jsonb_build_object('size', ${size}::int4)
      where tenant = ${tenant} and name = any (${[...names]}::text[])`;
  }
  await publishOnce({ outbox: postgresOutbox(sql) });
}

async function streamOf(tenant: string): Promise<bigint> {
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
  if (!row) throw new Error(`no stream of ${tenant}`);
  return row.id;
}

function isAbout(name: string | undefined): (event: SseEvent) => boolean {
  return ({ data }) => data.data?.metadata.name === name;
}

function attemptsOf({ events }: SseClient): Record<string, number> {
  const delivered = events.filter(({ id }) => id !== undefined);
  return Object.fromEntries(delivered.map(({ data }) => [data.data.metadata.name, data.attempt]));
}
