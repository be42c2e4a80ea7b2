import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { EVENTS, expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { openRawConnection } from '#test/support/raw-connection.ts';
import { openSse } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

const TENANT = 'acme';
/** All of it is far more than the network holds of what a client does not read. */
const COUNT = 200;
const EVENT_CHARACTERS = 200_000;

let database: PreparedDatabase;
let server: WatchServer;

beforeAll(async () => {
  database = await prepareDatabase([TENANT]);
  server = await startWatchServer(database.sql);
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select ${TENANT}, 'example.dev', 'Widget', 'w' || n, jsonb_build_object('text', repeat('x', ${EVENT_CHARACTERS}))
    from generate_series(1, ${COUNT}) n`;
  await publishOnce({ outbox: postgresOutbox(database.sql) });
});

afterAll(async () => {
  await server.stop();
  await database.close();
});

test('a slow replay that retention overtakes ends with ERROR 410, the cursor to go on from, and the end of its connection', async () => {
  const token = await server.token([TENANT]);
  const connection = await openRawConnection(server.baseUrl);
  connection.write(
    `GET ${EVENTS}?from=earliest HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
  await connection.until('event: READY\n');
  connection.pause();
  await expireEvents(database.sql, TENANT, COUNT - 1);
  connection.resume();
  await connection.until('event: ERROR\n');
  await connection.ended;

  const text = connection.text();
  const seqs = [...text.matchAll(/"seq":"(\d+)"/g)].map(([, seq]) => Number(seq));
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(seqs.length).toBeLessThan(COUNT);
  const [, id, data = ''] = /event: ERROR\n(id: ?.*)\ndata: (.*)\n/.exec(text) ?? [];
  const status = JSON.parse(data);
  expect(id?.trim()).toBe('id:');
  expectFailure(status, 410, 'Expired', 'list and watch from the cursor of that list');
  expect(text.trimEnd()).toMatch(/\n0$/);
  const resumed = await openSse(watchUrl(server.baseUrl, { from: status.details.cursor }), { token });
  expect((await resumed.next()).data.mode).toBe('resume');
  expect((await resumed.next()).data.seq).toBe(String(COUNT));
  await resumed.close();
});
