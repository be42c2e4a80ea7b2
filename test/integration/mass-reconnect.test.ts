import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

const WATCHERS = 300;
const MISSED = 600;
/** Two batches of 250, and the rest. */
const BATCHES = 3;

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase([]);
  ({ sql } = database);
  await createTenants(sql, ['acme']);
});

afterAll(() => database.close());

async function write(count: number): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select 'acme', 'example.dev', 'Widget', 'w' || gen_random_uuid(), '{"size": 1}' from generate_series(1, ${count}::int)`;
  await publishOnce({ outbox: postgresOutbox(sql) });
}

function open({ baseUrl }: WatchServer, token: string, lastEventId = ''): Promise<SseClient> {
  return openSse(`${baseUrl}/watch/v1/events?tenants=acme`, { token, lastEventId });
}

async function openAll(server: WatchServer, token: string, lastEventId: string): Promise<readonly SseClient[]> {
  return Promise.all(Array.from({ length: WATCHERS }, () => open(server, token, lastEventId)));
}

test('hundreds who come back at once to a server that was started again have what they missed: the log is read once for all, and other questions are asked one at a time', async () => {
  const before = await startWatchServer(sql);
  const token = await before.token(['acme']);
  const { id: lastEventId = '' } = await (await open(before, token)).next();
  await before.stop();
  await write(MISSED);

  const server = await startWatchServer(sql);
  const clients = await openAll(server, token, lastEventId);
  for (const client of clients) await client.waitFor(({ data }) => data.seq === String(MISSED));
  for (const { events } of clients) {
    const seqs = events.filter(({ event }) => event === 'ADDED').map(({ data }) => Number(data.seq));
    expect(seqs).toEqual(Array.from({ length: MISSED }, (_, n) => n + 1));
  }
  const { lists, ranges, reads } = server.questions;
  // Of equal ones, one at a time; beside them those of the feed itself.
  expect(lists.atOnce).toBeLessThanOrEqual(2);
  expect(ranges.atOnce).toBeLessThanOrEqual(2);
  expect(reads.times).toBe(BATCHES);
  await Promise.all(clients.map((client) => client.close()));
  await server.stop();
});
