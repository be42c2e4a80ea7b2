import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { watchUrl } from '#test/http/watch/world.ts';
import { cutAfter } from '#test/support/cut-after.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openSse } from '#test/support/sse-client.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

const TENANT = 'acme';
const NAMES = ['one', 'two', 'three', 'four', 'five'];
const AT_ONCE = 4;
const TIMEOUT_MS = 240_000;

let database: PreparedDatabase;
let server: WatchServer;
let token: string;

beforeAll(async () => {
  database = await prepareDatabase([TENANT]);
  server = await startWatchServer(database.sql);
  token = await server.token([TENANT]);
});

afterAll(async () => {
  await server.stop();
  await database.close();
});

test(
  'cut after any byte of an answer with five events, a watch that resumes with its last event id misses and repeats nothing',
  { timeout: TIMEOUT_MS },
  async () => {
    const head = await openSse(watchUrl(server.baseUrl, { tenants: TENANT }), { token });
    const { data: ready } = await head.next();
    for (const name of NAMES) {
      await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${TENANT}, 'example.dev', 'Widget', ${name})`;
    }
    await publishOnce({ outbox: postgresOutbox(database.sql) });
    server.tellOfEvents();
    for (const name of NAMES) expect((await head.next()).data.data.metadata.name).toBe(name);
    await head.close();

    const length = await lengthOfAnswer(ready.cursor);
    const left = Array.from({ length: length + 1 }, (_, bytes) => bytes).values();
    const shares = new Map<number, number>();
    await Promise.all(Array.from({ length: AT_ONCE }, cutEach));
    // Each share between what came before the cut and what came after it was seen.
    expect([...shares.keys()].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
    console.log(`${length + 1} cuts; events before the cut and how often: ${JSON.stringify([...shares])}`);

    async function cutEach(): Promise<void> {
      for (const bytes of left) {
        const { names, lastEventId } = await watchCut(ready.cursor, bytes);
        const before = names.length;
        const rest = await watchOn(ready.cursor, lastEventId, NAMES.length - before);
        expect([...names, ...rest], `cut after ${bytes} bytes`).toEqual(NAMES);
        shares.set(before, (shares.get(before) ?? 0) + 1);
      }
    }
  },
);

interface Seen {
  readonly names: string[];
  readonly lastEventId: string;
}

/** Through a proxy that breaks the connection once so many bytes have come. */
async function watchCut(from: string, bytes: number): Promise<Seen> {
  const proxy = await proxyWith(bytes);
  const names: string[] = [];
  let lastEventId = '';
  try {
    const client = await openSse(watchUrl(`http://127.0.0.1:${proxy.port}`, { tenants: TENANT, from }), { token });
    expect(await client.ended).toBeInstanceOf(Error);
    ({ lastEventId } = client);
    names.push(...client.events.filter(({ event }) => event === 'ADDED').map(({ data }) => data.data.metadata.name));
  } catch (error) {
    // Cut inside the head of the answer.
    expect(error).toBeInstanceOf(TypeError);
  } finally {
    await proxy.stop();
  }
  return { names, lastEventId };
}

/** What a browser does: the address that it was given, and the last id, if there was one. */
async function watchOn(from: string, lastEventId: string, count: number): Promise<string[]> {
  const client = await openSse(watchUrl(server.baseUrl, { tenants: TENANT, from }), { token, lastEventId });
  const names: string[] = [];
  expect((await client.next()).data.mode).toBe('resume');
  while (names.length < count) names.push((await client.next()).data.data.metadata.name);
  await client.close();
  // Nothing came behind the last one.
  expect(client.events.length).toBe(count + 1);
  return names;
}

/** In bytes, with its head and its chunks. */
async function lengthOfAnswer(from: string): Promise<number> {
  const proxy = await proxyWith(Number.POSITIVE_INFINITY);
  const client = await openSse(watchUrl(`http://127.0.0.1:${proxy.port}`, { tenants: TENANT, from }), { token });
  for (const name of ['READY', ...NAMES]) {
    const { event, data } = await client.next();
    expect(event === 'READY' ? event : data.data.metadata.name).toBe(name);
  }
  const length = proxy.passedBytes();
  await client.close();
  await proxy.stop();
  return length;
}

async function proxyWith(bytes: number): Promise<TcpProxy & { passedBytes(): number }> {
  const { hostname, port } = new URL(server.baseUrl);
  const cut = cutAfter(bytes, () => proxy.cut());
  const proxy = await startTcpProxy({ host: hostname, port: Number(port), answers: cut.answers });
  return Object.assign(proxy, { passedBytes: cut.passedBytes });
}
