import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { writeSteadily } from '#test/support/load.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';

const TENANTS = Array.from({ length: 8 }, (_, index) => `tenant-${index}`);
const PUBLISHERS = 4;
const BATCHES = 1_500;
const seed = testSeed();

let database: PreparedDatabase;
let sql: Sql;
/** What an observer saw, look by look: all ids, in their order. */
const looks: (readonly bigint[])[] = [];

beforeAll(async () => {
  database = await prepareDatabase(TENANTS);
  ({ sql } = database);
  const stopping = new AbortController();
  const random = seededRandom(seed);
  const busy = Promise.all([
    ...Array.from({ length: PUBLISHERS }, () => publishSmallBatches(stopping.signal)),
    writeSteadily({ sql, tenants: TENANTS, objects: 20, writesPerSecond: 3_000, random }, stopping.signal),
  ]);
  while ((looks.at(-1)?.length ?? 0) < BATCHES) {
    const rows = await sql<{ id: bigint }[]>`select id from plumbline.batch order by id`;
    looks.push(rows.map(({ id }) => id));
  }
  stopping.abort();
  await busy;
  await publishOnce({ outbox: postgresOutbox(sql) });
}, 120_000);

afterAll(() => database.close());

test(`batches appear in the order of their ids, over all streams and publishers (PLUMBLINE_TEST_SEED=${seed})`, () => {
  for (const [index, look] of looks.entries()) {
    const before = looks[index - 1] ?? [];
    expect(look.slice(0, before.length)).toEqual(before);
  }
  expect(looks.length).toBeGreaterThan(50);
});

test('each stream is covered by its batches without a gap or an overlap', async () => {
  const gaps = await sql`
    select stream, first_seq, lag(first_seq + count, 1, 1) over (partition by stream order by id) as expected
    from plumbline.batch`.then((rows) => rows.filter((row) => row['first_seq'] !== row['expected']));
  expect(gaps).toEqual([]);
  const ends = await sql`select f.stream from plumbline.frontier f
    where f.last_seq <> (select coalesce(max(first_seq + count - 1), 0) from plumbline.batch b where b.stream = f.stream)`;
  expect(ends).toEqual([]);
});

test('the resource versions of a batch are those of its events, in their order', async () => {
  const wrong = await sql`
    select b.id from plumbline.batch b
    where b.resource_versions <> (select array_agg(e.resource_version order by e.seq) from plumbline.event_log e
      where e.stream = b.stream and e.seq >= b.first_seq and e.seq < b.first_seq + b.count)
      or b.first_position <> b.first_seq`;
  expect(wrong).toEqual([]);
});

test('the frontier says where each log ends, and its numbers are dense', async () => {
  const wrong = await sql`
    select f.stream from plumbline.frontier f cross join lateral (
      select count(*) as count, coalesce(max(seq), 0) as last from plumbline.event_log e where e.stream = f.stream) e
    where (f.first_seq, f.last_seq, f.last_position, f.last_seq) is distinct from (1::bigint, e.last, e.last, e.count)`;
  expect(wrong).toEqual([]);
});

async function publishSmallBatches(signal: AbortSignal): Promise<void> {
  const outbox = postgresOutbox(sql);
  while (!signal.aborted) {
    for (const stream of await outbox.pendingStreams()) {
      await outbox.publishBatch(stream, { maxCount: 3, maxBytes: 1_000_000 });
    }
  }
}
