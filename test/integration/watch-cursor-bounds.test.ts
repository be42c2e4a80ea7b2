import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { MAX_CURSOR_CHARACTERS, MAX_CURSOR_STREAMS } from '#core/cursor.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openSse, type SseClient, SseRefused } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

const LIMIT = MAX_CURSOR_STREAMS;
const names = Array.from({ length: LIMIT + 1 }, (_, index) => `tenant-${index}`);
const MAX = 2n ** 63n - 1n;

let database: PreparedDatabase;
let server: WatchServer;

beforeAll(async () => {
  database = await prepareDatabase([]);
  await createTenants(database.sql, names);
  server = await startWatchServer(database.sql);
});

afterAll(async () => {
  await server.stop();
  await database.close();
});

test('256 tenants are watched at once, with cursors on bookmarks that resume by query and by header; 257 are refused', async () => {
  const tenants = names.slice(0, LIMIT);
  const { client, cursor } = await open(tenants);
  expect(cursor.length).toBeLessThanOrEqual(MAX_CURSOR_CHARACTERS);
  await write(...tenants);
  const seen = new Set<string>();
  while (seen.size < LIMIT) {
    const { id, data } = await client.waitFor(({ event }) => event === 'ADDED');
    expect(id, 'a cursor of 256 tenants rides on bookmarks').toBeUndefined();
    seen.add(data.tenant);
  }
  await client.close();
  for (const place of [{ from: cursor }, { lastEventId: cursor }]) {
    const resumed = await open(tenants, place);
    const again = new Set<string>();
    while (again.size < LIMIT) again.add((await resumed.client.waitFor(({ event }) => event === 'ADDED')).data.tenant);
    await resumed.client.close();
  }
  const refused: unknown = await open(names).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(SseRefused);
  expectFailure((refused as SseRefused).body, 400, 'BadRequest', /257 tenants is too wide.* 256; name fewer .*group/);
});

test('a cursor of 4,096 characters is opened by query and by header; one character more is malformed', async () => {
  const tenants = names.slice(0, 3);
  const wide = Array.from({ length: 152 }, (_, index) => [BigInt(index + 1), { seq: MAX, position: 0n }] as const);
  const cursor = server.cursors.seal(new Map([...wide, [153n, { seq: 0n, position: 0n }]]), 'public', tenants);
  expect(cursor.length).toBe(MAX_CURSOR_CHARACTERS);
  for (const [text, code, reason] of [
    [cursor, 410, 'StreamRecreated'],
    [`${cursor}A`, 400, 'BadRequest'],
  ] as const) {
    const refused: unknown = await open(tenants, { from: text }).catch((error: unknown) => error);
    expectFailure((refused as SseRefused).body, code, reason);
    const { data } = await (await connect(tenants, { lastEventId: text })).next();
    expectFailure(data, code, reason);
  }
});

interface From {
  readonly from?: string;
  readonly lastEventId?: string;
}

async function open(
  tenants: readonly string[],
  place: From = {},
): Promise<{ readonly client: SseClient; readonly cursor: string }> {
  const client = await connect(tenants, place);
  const { event, data } = await client.next();
  expect(event).toBe('READY');
  return { client, cursor: data.cursor };
}

async function connect(tenants: readonly string[], { from, lastEventId }: From): Promise<SseClient> {
  const query = { tenants: tenants.join(','), ...(from !== undefined && { from }) };
  const token = await server.token('*');
  return openSse(watchUrl(server.baseUrl, query), { token, ...(lastEventId !== undefined && { lastEventId }) });
}

async function write(...tenants: readonly string[]): Promise<void> {
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select tenant, 'example.dev', 'Widget', 'w' from unnest(${[...tenants]}::text[]) tenant`;
  await publishOnce({ outbox: postgresOutbox(database.sql) });
  server.tellOfEvents();
}
