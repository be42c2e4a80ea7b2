import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const MEBIBYTE = 1024 * 1024;
const TOO_MANY_BYTES = 9 * MEBIBYTE;

let database: PreparedDatabase;
let sql: Sql;
let tenants = 0;

beforeAll(async () => {
  database = await prepareDatabase(['other']);
  ({ sql } = database);
});

afterAll(() => database.close());

test('a record that is too large holds its own stream, visibly, and no other', async () => {
  const tenant = await newTenant();
  await insert(tenant, 'before');
  await insert(tenant, 'large', TOO_MANY_BYTES);
  await insert(tenant, 'behind');
  await insert('other', 'elsewhere');
  const quarantined = await publish();
  expect(quarantined).toEqual([`${await streamOf(tenant)}: the object is too large for an event`]);
  expect(await namesInLog(tenant)).toEqual(['before']);
  expect(await namesInLog('other')).toContain('elsewhere');

  await insert(tenant, 'later');
  await insert('other', 'elsewhere-2');
  expect(await publish()).toEqual([]);
  expect(await namesInLog(tenant)).toEqual(['before']);
  expect(await namesInLog('other')).toContain('elsewhere-2');
  const [held] = await sql<
    { reason: string }[]
  >`select reason from plumbline.quarantine where stream = ${await streamOf(tenant)}`;
  expect(held?.reason).toMatch(/^the object has 9\d{6} bytes; an event may have 8388608$/);
});

test('a held stream keeps its lists current, without a head', async () => {
  const tenant = await newTenant();
  await insert(tenant, 'large', TOO_MANY_BYTES);
  await insert(tenant, 'behind');
  await publish();
  const params = { group: 'example.dev', kind: 'Widget', labels: [], limit: 10, tenant, name: 'behind' };
  const { rows, head } = await postgresResources(sql).list({ tenants: '*' }, params);
  expect([rows.length, head]).toEqual([1, undefined]);
});

test('a retry of a record that is still too large holds the stream again', async () => {
  const tenant = await newTenant();
  await insert(tenant, 'large', TOO_MANY_BYTES);
  await publish();
  expect(await retry(tenant)).toBe(true);
  expect((await publish()).length).toBe(1);
  expect(await namesInLog(tenant)).toEqual([]);
  expect(await retry('other')).toBe(false);
});

test('a record that is skipped leaves no hole in the log, and is kept with the reason and who did it', async () => {
  const tenant = await newTenant();
  for (const name of ['before', 'large', 'behind']) await insert(tenant, name, name === 'large' ? TOO_MANY_BYTES : 1);
  await publish();
  expect(await skip(tenant, 'agreed with its owner')).toBe(true);
  expect(await skip(tenant, 'again')).toBe(false);
  await publish();
  expect(await namesInLog(tenant)).toEqual(['before', 'behind']);
  expect(await seqsInLog(tenant)).toEqual([1n, 2n]);
  const [{ user } = { user: '' }] = await sql<{ user: string }[]>`select session_user as user`;
  const skipped = await sql`select reason, skipped_by, record ->> 'name' as name, length(record ->> 'spec') as length
    from plumbline.skipped_record where stream = ${await streamOf(tenant)}`;
  expect(skipped).toEqual([
    { reason: 'agreed with its owner', skipped_by: user, name: 'large', length: expect.any(Number) },
  ]);
  expect(skipped[0]?.['length']).toBeGreaterThan(TOO_MANY_BYTES);
});

test('what many bytes compress to does not count: a record is weighed as it is read', async () => {
  const tenant = await newTenant();
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values (${tenant}, 'example.dev', 'Widget', 'bomb', jsonb_build_object('pad', repeat('x', ${TOO_MANY_BYTES}::int)))`;
  expect((await publish()).length).toBe(1);
});

test('a record just below the limit is published, alone in its batch', async () => {
  const tenant = await newTenant();
  for (const name of ['one', 'two', 'three']) await insert(tenant, name, 7 * MEBIBYTE);
  expect(await publish()).toEqual([]);
  const batches = await sql`select count from plumbline.batch where stream = ${await streamOf(tenant)} order by id`;
  expect(batches.map((batch) => batch['count'])).toEqual([1, 1, 1]);
  const log = postgresEventLog(sql);
  const read = await log.read(
    await streamOf(tenant),
    { seq: 0n, position: 0n },
    { maxCount: 10, maxBytes: 8 * MEBIBYTE },
  );
  expect([read.events.length, read.more]).toEqual([1, true]);
});

test('where the log has no room for today, as after days of sleep, it is made: no record is held for it', async () => {
  const tenant = await newTenant();
  const partitions = await sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'plumbline.event_log'::regclass`;
  for (const { name } of partitions) await sql.unsafe(`drop table ${name}`);
  await insert(tenant, 'awake');
  expect(await publish()).toEqual([]);
  expect(await namesInLog(tenant)).toEqual(['awake']);
});

test('a record is not left out without a reason', async () => {
  const tenant = await newTenant();
  await insert(tenant, 'large', TOO_MANY_BYTES);
  await publish();
  for (const reason of ['', ' ']) await expect(skip(tenant, reason)).rejects.toThrow('say why the record is left out');
  expect(await skip(tenant, 'not needed')).toBe(true);
});

/** Publishes what can be; returns what was quarantined. */
async function publish(): Promise<readonly string[]> {
  const quarantined: string[] = [];
  await publishOnce({
    outbox: postgresOutbox(sql),
    onQuarantined: (stream, reason) => void quarantined.push(`${stream}: ${reason}`),
  });
  return quarantined;
}

async function newTenant(): Promise<string> {
  const tenant = `tenant-${(tenants += 1)}`;
  await createTenants(sql, [tenant]);
  return tenant;
}

/** With a spec of this size that does not compress. */
async function insert(tenant: string, name: string, bytes: number = 1): Promise<void> {
  const pad = Buffer.from(crypto.getRandomValues(new Uint8Array(Math.min(65_536, bytes)))).toString('base64');
  const spec = JSON.stringify({ pad: pad.repeat(Math.ceil(bytes / pad.length)) });
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values (${tenant}, 'example.dev', 'Widget', ${name}, ${spec}::text::jsonb)`;
}

async function streamOf(tenant: string): Promise<bigint> {
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
  return row?.id ?? 0n;
}

async function namesInLog(tenant: string): Promise<readonly string[]> {
  const rows = await sql<
    { name: string }[]
  >`select name from plumbline.event_log where tenant = ${tenant} order by seq`;
  return rows.map((row) => row.name);
}

async function seqsInLog(tenant: string): Promise<readonly bigint[]> {
  const rows = await sql<{ seq: bigint }[]>`select seq from plumbline.event_log where tenant = ${tenant} order by seq`;
  return rows.map((row) => row.seq);
}

async function retry(tenant: string): Promise<boolean> {
  const [row] = await sql<{ done: boolean }[]>`select plumbline.quarantine_retry(${await streamOf(tenant)}) as done`;
  return row?.done ?? false;
}

async function skip(tenant: string, reason: string): Promise<boolean> {
  const [row] = await sql<
    { done: boolean }[]
  >`select plumbline.quarantine_skip(${await streamOf(tenant)}, ${reason}) as done`;
  return row?.done ?? false;
}
