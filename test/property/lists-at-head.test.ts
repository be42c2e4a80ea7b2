import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import type { ResourceStore } from '#core/ports/resources.ts';
import { resourceJson } from '#core/resource-json.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';
import { keepActive } from '#test/property/lists/activity.ts';
import {
  readLists,
  readOwnWrites,
  readSnapshots,
  type SeenList,
  type SeenOwnWrite,
  type SeenSnapshot,
} from '#test/property/lists/readers.ts';
import { objectsOf, pageOf, readReplay, type Replay, stateAt } from '#test/property/lists/replay.ts';
import { installWitness } from '#test/property/ordering/witness.ts';

const TENANTS = ['red', 'green', 'blue'];
const LISTS = 1_000;
const SNAPSHOTS = 50;
const OWN_WRITES = 150;
const READERS = 5;
const ALL = { tenants: '*' } as const;
const seed = testSeed();

let database: PreparedDatabase;
let sql: Sql;
let store: ResourceStore;

beforeAll(async () => {
  database = await prepareDatabase(TENANTS);
  ({ sql } = database);
  store = postgresResources(sql);
  await installWitness(sql);
});

afterAll(() => database.close());

describe(`while many write and the publisher is seldom there (PLUMBLINE_TEST_SEED=${seed})`, () => {
  let lists: readonly SeenList[];
  let snapshots: readonly SeenSnapshot[];
  let ownWrites: readonly SeenOwnWrite[];
  let replay: Replay;

  beforeAll(async () => {
    const random = seededRandom(seed);
    const stopping = new AbortController();
    const activity = keepActive({ databaseUrl: database.url, sql, tenants: TENANTS, random }, stopping.signal);
    const streams = await sql<{ id: bigint }[]>`select id from plumbline.stream`.then((rows) =>
      rows.map(({ id }) => id),
    );
    const reading = Promise.all([
      Promise.all(Array.from({ length: READERS }, () => readLists(store, TENANTS, random.fork(), LISTS / READERS))),
      readSnapshots(store, SNAPSHOTS),
      readOwnWrites(store, 'red', random.fork(), OWN_WRITES),
    ]);
    const read = await Promise.race([reading, activity]).finally(() => stopping.abort());
    await activity;
    if (!read) throw new Error('the activity ended early');
    lists = read[0].flat();
    [, snapshots, ownWrites] = read;
    await publishOnce({ outbox: postgresOutbox(sql) });
    replay = await readReplay(postgresEventLog(sql), streams);
  }, 180_000);

  test(`each of ${LISTS} lists is the log applied up to its head`, () => {
    for (const { params, page } of lists) {
      if (!page.head) continue;
      const shown = { objects: page.rows.map(resourceJson), more: page.more };
      expect(shown, JSON.stringify(params)).toEqual(pageOf(stateAt(replay, page.head), params));
    }
    expect(lists.filter(({ page }) => page.rows.length > 10).length).toBeGreaterThan(LISTS / 10);
  });

  test(`each of ${SNAPSHOTS} snapshots is the log applied up to its head`, () => {
    for (const { head, rows } of snapshots) {
      const byUid = rows.toSorted((one, other) => (one.uid < other.uid ? -1 : 1));
      const expected = stateAt(replay, head).toSorted(({ subject: one }, { subject: other }) =>
        one.uid < other.uid ? -1 : 1,
      );
      expect(byUid.map(resourceJson)).toEqual(objectsOf(expected));
    }
  });

  test('a list shows what its caller has just written', () => {
    for (const { written, listed } of ownWrites) expect(listed).toBe(written);
    expect(ownWrites.filter(({ hasHead }) => hasHead).length).toBeGreaterThan(OWN_WRITES / 2);
  });
});

describe('without a publisher', () => {
  const params = { group: 'example.dev', kind: 'Widget', labels: [], limit: 500, tenant: 'green', name: 'alone' };

  test('a list answers within 1.5 s, with the current objects and no head', async () => {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values ('green', 'example.dev', 'Widget', 'alone')`;
    const start = performance.now();
    const page = await store.list(ALL, params);
    expect(performance.now() - start).toBeLessThan(1_500);
    expect(page.head).toBeUndefined();
    expect(page.rows.map((row) => row.name)).toEqual(['alone']);
  });

  test('a list of another kind, or of another tenant, does not wait for it', async () => {
    for (const other of [
      { ...params, kind: 'Vault' },
      { ...params, tenant: 'blue' },
    ]) {
      const start = performance.now();
      expect((await store.list(ALL, other)).head).toBeDefined();
      expect(performance.now() - start).toBeLessThan(500);
    }
  });
});
