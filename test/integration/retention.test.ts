import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { type EventLog, type LogPoint, PositionExpired } from '#core/ports/event-log.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const DAY_MS = 86_400_000;
const LIMITS = { maxCount: 100, maxBytes: 1_000_000 };

let database: PreparedDatabase;
let sql: Sql;
let log: EventLog;
let tenant: string;
let stream: bigint;
let tenants = 0;

beforeAll(async () => {
  database = await prepareDatabase([]);
  ({ sql } = database);
  log = postgresEventLog(sql);
});

afterAll(() => database.close());

beforeEach(async () => {
  tenant = `tenant-${(tenants += 1)}`;
  await createTenants(sql, [tenant]);
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
  stream = row?.id ?? 0n;
});

test('takes old events from the start, whole days at a time, and tells from where the log can be read', async () => {
  await publish(3, 2);
  await age(1, 4, 3);
  expect(await expire(1)).toBe(1);
  expect(await rangeOf()).toEqual({ start: point(4n), head: point(6n), assigned: 6n });
  const { events } = await log.read(stream, point(4n), LIMITS);
  expect(events.map((event) => event.seq)).toEqual([5n, 6n]);
  for (const seq of [0n, 1n, 3n]) {
    const refusal = await log.read(stream, point(seq), LIMITS).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(PositionExpired);
    expect(refusal).toMatchObject({ stream, earliest: point(4n) });
  }
});

test('forgets the batches whose last event is gone, and keeps the one that is cut', async () => {
  await publish(3, 2);
  await age(1, 4, 3);
  await expire(1);
  const batches = await sql`select first_seq, count from plumbline.batch where stream = ${stream} order by id`;
  expect(batches).toEqual([{ first_seq: 4n, count: 3 }]);
});

test('leaves what is not old enough, to the day', async () => {
  await publish(2, 1);
  await age(1, 2, 2);
  expect(await expire(3)).toBe(0);
  expect(await rangeOf()).toEqual({ start: point(0n), head: point(2n), assigned: 2n });
  expect(await expire(1)).toBe(1);
});

test('of all events leaves an empty log, which goes on with the next number', async () => {
  await publish(3, 1);
  await age(1, 3, 5);
  await expire(1);
  expect(await rangeOf()).toEqual({ start: point(3n), head: point(3n), assigned: 3n });
  expect(await log.read(stream, point(3n), LIMITS)).toEqual({ events: [], more: false });
  await expect(log.read(stream, point(2n), LIMITS)).rejects.toBeInstanceOf(PositionExpired);
  await publish(1, 1);
  const { events } = await log.read(stream, point(3n), LIMITS);
  expect(events.map((event) => event.seq)).toEqual([4n]);
});

test('does not touch streams whose events are young', async () => {
  await publish(2, 1);
  const young = stream;
  await createTenants(sql, ['old']);
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = 'old'`;
  [tenant, stream] = ['old', row?.id ?? 0n];
  await publish(2, 1);
  await age(1, 2, 4);
  await expire(1);
  expect((await log.ranges([young])).get(young)).toEqual({ start: point(0n), head: point(2n), assigned: 2n });
});

test('makes room for the days to come, however often it is asked', async () => {
  const count = async (): Promise<number> =>
    (await sql`select from pg_inherits where inhparent = 'plumbline.event_log'::regclass`).length;
  const before = await count();
  await Promise.all(Array.from({ length: 5 }, () => postgresRetention(sql).prepare()));
  expect(await count()).toBe(before);
});

/** Batches of so many events each. */
async function publish(events: number, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch += 1) {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      select ${tenant}, 'example.dev', 'Widget', gen_random_uuid()::text from generate_series(1, ${events}::int)`;
    await publishOnce({ outbox: postgresOutbox(sql) });
  }
}

/** As if events had been published days ago. */
async function age(firstSeq: number, lastSeq: number, days: number): Promise<void> {
  const day = new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
  const next = new Date(Date.now() - (days - 1) * DAY_MS).toISOString().slice(0, 10);
  await sql.unsafe(`create table if not exists plumbline.event_log_${day.replaceAll('-', '')} partition of
    plumbline.event_log for values from ('${day} 00:00:00+00') to ('${next} 00:00:00+00')`);
  await sql`update plumbline.event_log set published_at = ${`${day} 12:00:00+00`}::timestamptz
    where stream = ${stream} and seq between ${firstSeq} and ${lastSeq}`;
}

/** @returns the number of days that went. */
function expire(days: number): Promise<number> {
  return postgresRetention(sql).expire(days * DAY_MS);
}

async function rangeOf(): Promise<unknown> {
  return (await log.ranges([stream])).get(stream);
}

function point(seq: bigint): LogPoint {
  return { seq, position: seq };
}
