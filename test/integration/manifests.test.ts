import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { chooseLog, LogMismatch, switchLog } from '#adapters/postgres/log-choice.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { postgresManifests } from '#adapters/postgres/manifests.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresTopics } from '#adapters/postgres/topics.ts';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import type { IndexedStream } from '#core/ports/log-index.ts';
import type { Manifest, Manifests } from '#core/ports/manifests.ts';
import type { TenantStream } from '#core/ports/tenant-streams.ts';
import { type StreamReadiness, streamReadiness } from '#functions/reconcile/kinds/stream-readiness.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const WIDE = { maxCount: 100, maxBytes: 1024 * 1024 };
const SETTINGS = { retentionMs: 3_600_000, retentionBytes: undefined };
const KAFKA = { log: 'kafka', topicPrefix: 'test.', clusterId: 'one' } as const;

let database: PreparedDatabase;
let sql: Sql;
let server: Sql;
let first: Manifests;
let second: Manifests;
let installation: string;
let tenants = 0;
let tenant: string;
let stream: bigint;

beforeAll(async () => {
  database = await prepareDatabase([]);
  ({ sql } = database);
  await switchLog(database.url, KAFKA);
  [{ installation } = { installation: '' }] = await sql<
    { installation: string }[]
  >`select installation from plumbline.log_choice`;
  server = connect(database.url, { applicationName: 'test publisher', role: 'plumbline_worker' });
  first = postgresManifests(server, 'first');
  second = postgresManifests(server, 'second');
});

beforeEach(async () => {
  tenant = `t${(tenants += 1)}`;
  await createTenants(sql, [tenant]);
  const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
  stream = row?.id ?? 0n;
});

afterAll(async () => {
  await server.end({ timeout: 1 });
  await database.close();
});

describe('a batch', () => {
  test('has the next numbers, in the order of the records', async () => {
    await provision();
    await write('a', 'b', 'c');
    const batch = await begin(first);
    expect(batch).toMatchObject({ topic: topicName(), lastPosition: undefined });
    expect(numbersOf(batch)).toEqual([
      [1n, 'a'],
      [2n, 'b'],
      [3n, 'c'],
    ]);
    expect(await first.complete(batch, [{ firstPosition: 0n, count: 3 }])).toBe(true);
    expect(await index()).toMatchObject({ head: { seq: 3n, position: 2n }, assigned: 3n });
    await write('d');
    const next = await begin(first);
    expect(next.lastPosition).toBe(2n);
    expect(numbersOf(next)).toEqual([[4n, 'd']]);
  });

  test('is bounded, and has one record at least', async () => {
    await provision();
    await write('a', 'b', 'c');
    const batch = await first.begin(stream, { maxCount: 2, maxBytes: 1024 });
    expect(numbersOf(batch)).toHaveLength(2);
    await first.complete(batch as Manifest, [{ firstPosition: 0n, count: 2 }]);
    expect(numbersOf(await first.begin(stream, { maxCount: 2, maxBytes: 1 }))).toHaveLength(1);
  });

  test('that was begun is begun again as it was, whatever came since', async () => {
    await provision();
    await write('a', 'b');
    const batch = await begin(first);
    await write('c');
    expect(numbersOf(await begin(first))).toEqual(numbersOf(batch));
    expect((await index())?.assigned).toBe(2n);
    expect((await index())?.head.seq).toBe(0n);
  });

  test('belongs to one publisher, until its time is over', async () => {
    await provision();
    await write('a');
    const batch = await begin(first);
    expect(await second.begin(stream, WIDE)).toBe('busy');
    await expire();
    const taken = await begin(second);
    expect(taken).toEqual({ ...batch });
    expect(await first.begin(stream, WIDE)).toBe('busy');
  });

  test('is completed once: whoever comes late changes nothing', async () => {
    await provision();
    await write('a');
    const batch = await begin(first);
    await expire();
    const taken = await begin(second);
    expect(await second.complete(taken, [{ firstPosition: 7n, count: 1 }])).toBe(true);
    const state = await index();
    expect(await first.complete(batch, [{ firstPosition: 5n, count: 1 }])).toBe(false);
    await write('b');
    await begin(second);
    expect(await first.complete(batch, [{ firstPosition: 9n, count: 1 }])).toBe(false);
    expect(await index()).toEqual({ ...state, assigned: 2n });
  });

  test('may lie in several runs, each with its line in the index', async () => {
    await provision();
    await write('a', 'b', 'c');
    const batch = await begin(first);
    const runs = [
      { firstPosition: 4n, count: 2 },
      { firstPosition: 10n, count: 1 },
    ];
    await first.complete(batch, runs);
    expect((await index())?.head).toEqual({ seq: 3n, position: 10n });
    const batches = await sql`select first_seq, first_position, count, cardinality(resource_versions) as versions
      from plumbline.batch where stream = ${stream} order by id`;
    expect([...batches]).toEqual([
      { first_seq: 1n, first_position: 4n, count: 2, versions: 2 },
      { first_seq: 3n, first_position: 10n, count: 1, versions: 1 },
    ]);
  });

  test('is completed by as many events as it has, or not at all', async () => {
    await provision();
    await write('a', 'b');
    const batch = await begin(first);
    await expect(first.complete(batch, [{ firstPosition: 0n, count: 1 }])).rejects.toThrow(/the batch has 2 records/);
    expect(await index()).toMatchObject({ head: { seq: 0n }, assigned: 2n });
  });

  test('of one stream delays none of another', async () => {
    await provision();
    await write('a');
    await begin(first);
    expect(await postgresOutbox(server).pendingStreams()).toContain(stream);
    const [before, other] = [stream, `t${(tenants += 1)}`];
    await createTenants(sql, [other]);
    const [row] = await sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${other}`;
    [tenant, stream] = [other, row?.id ?? before];
    await provision();
    await write('x');
    expect(numbersOf(await begin(second))).toEqual([[1n, 'x']]);
  });

  test('is made of sixteen publishers at once: each number is given to one record', async () => {
    await provision();
    const names = Array.from({ length: 60 }, (_, n) => `w${n}`);
    await write(...names);
    const seen = new Map<bigint, string>();
    let position = 0n;
    await Promise.all(Array.from({ length: 16 }, (_, n) => publishAs(postgresManifests(server, `p${n}`))));
    expect([...seen.keys()]).toEqual(names.map((_, n) => BigInt(n + 1)));
    expect([...seen.values()]).toEqual(names);

    async function publishAs(manifests: Manifests): Promise<void> {
      for (;;) {
        const batch = await manifests.begin(stream, { maxCount: 3, maxBytes: 1024 * 1024 });
        if (batch === 'idle') return;
        if (typeof batch === 'string') continue;
        const firstPosition = position;
        position += BigInt(batch.events.length);
        for (const { seq, subject } of batch.events) seen.set(seq, subject.name);
        await manifests.complete(batch, [{ firstPosition, count: batch.events.length }]);
      }
    }
  });
});

describe('a record that the log refuses', () => {
  test('holds its stream, and keeps its number when it is tried again', async () => {
    await provision();
    await write('a', 'large', 'c');
    const batch = await begin(first);
    await first.quarantine(batch, 1, 'too large');
    expect(await first.begin(stream, WIDE)).toBe('held');
    expect(await postgresOutbox(server).pendingStreams()).not.toContain(stream);
    await sql`select plumbline.quarantine_retry(${String(stream)}::bigint)`;
    expect(numbersOf(await begin(first))).toEqual(numbersOf(batch));
  });

  test('keeps its number when it is skipped, without its object; lists show what was before until it is published', async () => {
    await provision();
    await write('a');
    await first.complete(await begin(first), [{ firstPosition: 0n, count: 1 }]);
    await sql`update plumbline.resource set spec = '{"size":2}', labels = '{"tier":"gold"}' where tenant = ${tenant} and name = 'a'`;
    await write('b');
    const batch = await begin(first);
    await first.quarantine(batch, 0, 'too large');
    await sql`select plumbline.quarantine_skip(${String(stream)}::bigint, 'not needed')`;
    const again = await begin(first);
    expect(again.events.map(({ seq, type, subject }) => [seq, type, subject.name])).toEqual([
      [2n, 'SKIPPED', 'a'],
      [3n, 'ADDED', 'b'],
    ]);
    const [before] =
      await sql`select old_spec, old_labels from plumbline.outbox where stream = ${stream} and type = 'SKIPPED'`;
    expect(before).toEqual({ old_spec: {}, old_labels: {} });
    const [kept] = await sql<
      { spec: unknown }[]
    >`select record -> 'spec' as spec from plumbline.skipped_record where stream = ${stream}`;
    expect(kept?.spec).toEqual({ size: 2 });
  });
});

describe('a topic', () => {
  test('is due once, named after its tenant, its installation and its stream; until it is ready its stream is held', async () => {
    await write('a');
    expect(await postgresOutbox(server).pendingStreams()).not.toContain(stream);
    expect(await first.begin(stream, WIDE)).toBe('held');
    expect(await due()).toEqual([{ name: topicName(), stream, deed: 'ensure', settings: SETTINGS }]);
    await provision();
    expect(await due()).toEqual([]);
    expect(await found()).toMatchObject({ id: stream, topic: topicName(), isTopicReady: true });
    expect(await readiness()).toMatchObject({ status: 'True', reason: 'TopicReady' });
  });

  test('that cannot be made yet tells its tenant why', async () => {
    await postgresTopics(server).reportUnready(topicName(), 'no broker answers');
    expect(await readiness()).toEqual({ status: 'False', reason: 'TopicPending', message: 'no broker answers' });
    await provision();
    await postgresTopics(server).reportUnready(topicName(), 'too late');
    expect(await readiness()).toMatchObject({ status: 'True', reason: 'TopicReady' });
  });

  test('is due again when its tenant wants its events for longer', async () => {
    await provision();
    await sql`update plumbline.resource set spec = '{"eventRetention":{"hours":2,"maxBytes":5000000}}'
      where api_group = 'plumbline.dev' and name = ${tenant}`;
    const settings = { retentionMs: 7_200_000, retentionBytes: 5_000_000 };
    expect(await due()).toMatchObject([{ deed: 'ensure', settings }]);
    await postgresTopics(server).markReady(topicName(), settings);
    expect(await due()).toEqual([]);
  });

  test('that is missing holds its stream until it is found', async () => {
    await provision();
    await write('a');
    const topics = postgresTopics(server);
    const name = topicName();
    expect(await topics.markMissing(name)).toBe(false);
    expect(await first.begin(stream, WIDE)).toBe('held');
    expect((await topics.current()).find((topic) => topic.name === name)).toMatchObject({ isMissing: true });
    expect(await readiness()).toMatchObject({ status: 'False', reason: 'TopicMissing' });
    await topics.markFound(name);
    expect(numbersOf(await begin(first))).toEqual([[1n, 'a']]);
  });

  test('that is missing for long is lost', async () => {
    await provision();
    const name = topicName();
    await postgresTopics(server).markMissing(name);
    await sql`update plumbline.topic set missing_since = missing_since - interval '1 minute' where name = ${name}`;
    expect(await postgresTopics(server).markMissing(name)).toBe(true);
  });

  test('that is lost is replaced by one of another name, in which the numbers go on', async () => {
    await provision();
    await write('a', 'b');
    await first.complete(await begin(first), [{ firstPosition: 8n, count: 2 }]);
    await write('c');
    const name = topicName();
    await postgresTopics(server).replace(name, 'it was deleted');
    await postgresTopics(server).replace(name, 'told twice');
    expect(await index()).toMatchObject({ topic: `${name}-1`, firstSeq: 3n, start: { seq: 2n }, head: { seq: 2n } });
    await provision();
    const next = await begin(first);
    expect(next).toMatchObject({ topic: `${name}-1`, lastPosition: undefined });
    expect(numbersOf(next)).toEqual([[3n, 'c']]);
  });

  test('that is lost under a batch gives its records numbers that nobody has read', async () => {
    await provision();
    await write('a', 'b');
    const batch = await begin(first);
    await postgresTopics(server).replace(batch.topic, 'it was deleted');
    expect(await first.complete(batch, [{ firstPosition: 0n, count: 2 }])).toBe(false);
    await provision();
    expect(await index()).toMatchObject({ firstSeq: 4n, start: { seq: 3n }, head: { seq: 3n }, assigned: 5n });
    const again = await begin(first);
    expect(numbersOf(again)).toEqual([
      [4n, 'a'],
      [5n, 'b'],
    ]);
    expect(await first.complete(again, [{ firstPosition: 0n, count: 2 }])).toBe(true);
  });

  test('begins where retention has cut it', async () => {
    await provision();
    await write('a', 'b', 'c');
    await first.complete(await begin(first), [{ firstPosition: 4n, count: 3 }]);
    await write('d');
    await first.complete(await begin(first), [{ firstPosition: 9n, count: 1 }]);
    const log = postgresLogIndex(server);
    const name = topicName();
    await log.advanceStart(name, 6n);
    expect((await index())?.start).toEqual({ seq: 2n, position: 5n });
    await log.advanceStart(name, 5n);
    expect((await index())?.start).toEqual({ seq: 2n, position: 5n });
    await log.advanceStart(name, 8n);
    expect((await index())?.start).toEqual({ seq: 3n, position: 7n });
    await log.advanceStart(name, 20n);
    expect((await index())?.start).toEqual({ seq: 4n, position: 19n });
  });

  test('of a tenant that is gone is removed, once its end could be read; then it holds nothing', async () => {
    await provision();
    await write('a');
    await first.complete(await begin(first), [{ firstPosition: 0n, count: 1 }]);
    await sql`delete from plumbline.resource where tenant = ${tenant}`;
    await first.complete(await begin(first), [{ firstPosition: 1n, count: 1 }]);
    await sql`delete from plumbline.resource where api_group = 'plumbline.dev' and name = ${tenant}`;
    expect(await due()).toEqual([]);
    await sql`update plumbline.stream set closed_at = closed_at - interval '1 hour' where id = ${stream}`;
    expect(await due()).toEqual([{ name: topicName(), stream, deed: 'remove' }]);
    expect(await index()).toMatchObject({ start: { seq: 0n }, head: { seq: 2n } });
    await postgresTopics(server).markRemoved(topicName());
    expect(await due()).toEqual([]);
    expect(await index()).toMatchObject({ start: { seq: 2n, position: 1n }, head: { seq: 2n, position: 1n } });
  });
});

test('databases at the same brokers have no topic in common', async () => {
  const other = await prepareDatabase([]);
  await switchLog(other.url, KAFKA);
  const names = (await postgresTopics(other.sql).due(SETTINGS)).map(({ name }) => name);
  expect(names).toHaveLength(2);
  const ours = await sql<{ name: string }[]>`select name from plumbline.topic where stream = 1`;
  expect(ours.map(({ name }) => name)).not.toEqual(names);
  await expect(chooseLog(other.url, KAFKA)).resolves.toBeUndefined();
  await other.close();
});

test('a copy of a database is refused its topics, and gets others when it is told to', async () => {
  const copy = await prepareDatabase(['acme']);
  await switchLog(copy.url, KAFKA);
  const before = await topicsOf(copy.sql);
  await copy.sql`update plumbline.log_choice set database_identity = 'that of the original'`;
  await expect(chooseLog(copy.url, KAFKA)).rejects.toThrow(LogMismatch);
  expect(await topicsOf(copy.sql)).toEqual(before);
  expect(await switchLog(copy.url, KAFKA)).toBe(3);
  await chooseLog(copy.url, KAFKA);
  const after = await topicsOf(copy.sql);
  expect(after).toHaveLength(3);
  expect(after.filter((name) => before.includes(name))).toEqual([]);
  await copy.close();
});

test('a stream in a topic cannot be published into the database, nor the reverse', async () => {
  await provision();
  await write('a');
  await expect(postgresOutbox(server).publishBatch(stream, WIDE)).rejects.toThrow(/its events lie in the topic/);
  const other = await prepareDatabase(['acme']);
  const [row] = await other.sql<{ id: bigint }[]>`select id from plumbline.stream where tenant = 'acme'`;
  await expect(postgresManifests(other.sql, 'x').begin(row?.id ?? 0n, WIDE)).rejects.toThrow(/not in a topic/);
  await other.close();
});

async function topicsOf(of: Sql): Promise<readonly string[]> {
  const rows = await of<{ topic: string }[]>`select topic from plumbline.frontier order by stream`;
  return rows.map(({ topic }) => topic);
}

/** Of the tenant's stream: no other database has one of this name. */
function topicName(): string {
  return `test.${tenant}.${installation}.${stream}`;
}

async function provision(): Promise<void> {
  for (const topic of await due())
    if (topic.deed === 'ensure') await postgresTopics(server).markReady(topic.name, topic.settings);
}

async function due(): ReturnType<ReturnType<typeof postgresTopics>['due']> {
  return (await postgresTopics(server).due(SETTINGS)).filter((topic) => topic.stream === stream);
}

async function index(): Promise<IndexedStream | undefined> {
  return (await postgresLogIndex(server).streams([stream])).get(stream);
}

async function found(): Promise<TenantStream> {
  const tenantStream = await postgresTenantStreams(server, undefined).find(tenant);
  if (!tenantStream) throw new Error(`tenant ${tenant} has no stream`);
  return tenantStream;
}

async function readiness(): Promise<StreamReadiness> {
  return streamReadiness(await found());
}

async function write(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name) values (${tenant}, 'example.dev', 'Widget', ${name})`;
  }
}

/** The holder's time is over. */
async function expire(): Promise<void> {
  await sql`update plumbline.manifest set held_until = now() - interval '1 second' where stream = ${stream}`;
}

async function begin(manifests: Manifests): Promise<Manifest> {
  const batch = await manifests.begin(stream, WIDE);
  if (typeof batch === 'string') throw new Error(`no batch was begun: ${batch}`);
  return batch;
}

function numbersOf(batch: Manifest | string): readonly (readonly [bigint, string])[] {
  if (typeof batch === 'string') throw new Error(`no batch was begun: ${batch}`);
  return batch.events.map(({ seq, subject }) => [seq, subject.name]);
}
