import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { type Child, startChild } from '#test/support/child.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';
import { waitBehindOpenWriter } from '#test/property/wake-up/in-flight.ts';
import { holdTransactionsOpen, writeAlone, writeTogether } from '#test/property/wake-up/lone-writes.ts';

const WRITES = 10_000;
const WRITERS = ['red', 'green'];
/** A resident publisher looks at least so often. Half of it tells a wake-up from a look. */
const FLOOR_MS = 1_000;
const SOON_MS = FLOOR_MS / 2;
const seed = testSeed();

let database: PreparedDatabase;
let sql: Sql;
let publisher: Child;

beforeAll(async () => {
  database = await prepareDatabase([...WRITERS, 'blue', 'yellow']);
  ({ sql } = database);
  publisher = await startPublisher();
});

afterAll(async () => {
  publisher.kill('SIGKILL');
  await publisher.exit;
  await database.close();
});

test(
  `none of ${WRITES} lone writes waits for the poll, whenever it comes (PLUMBLINE_TEST_SEED=${seed})`,
  { timeout: 240_000 },
  async () => {
    const random = seededRandom(seed);
    const stopping = new AbortController();
    const held = holdTransactionsOpen(database.url, 'blue', random.fork(), stopping.signal);
    await Promise.all(
      WRITERS.map((tenant) =>
        writeAlone({
          databaseUrl: database.url,
          tenant,
          count: WRITES / WRITERS.length,
          longestPauseMs: 3,
          random: random.fork(),
        }),
      ),
    );
    stopping.abort();
    await held;
    const waits = await waitsOf(WRITERS);
    expect(waits.length).toBe(WRITES);
    expect(waits.at(-1)).toBeLessThan(SOON_MS);
  },
);

test('a writer that was in flight when the publisher wanted to sleep does not wait for one that stays open', async () => {
  const tenants = { busy: 'yellow', short: 'short', long: 'long' };
  await createTenants(sql, ['short', 'long']);
  for (let round = 0; round < 8; round += 1) {
    expect(await waitBehindOpenWriter({ databaseUrl: database.url, tenants })).toBeLessThan(SOON_MS);
  }
});

test('under load, hardly any writer has to notify', async () => {
  let notifications = 0;
  const { unlisten } = await sql.listen('plumbline_outbox', () => (notifications += 1));
  const writes = await writeTogether({ databaseUrl: database.url, tenant: 'yellow', writers: 8, durationMs: 3_000 });
  await unlisten();
  expect(writes).toBeGreaterThan(1_000);
  expect(notifications).toBeLessThan(writes / 5);
});

test.each([
  ['listens', `application_name = 'plumbline test publisher' and query ilike 'listen%'`],
  ['has the locks', `application_name = 'plumbline publisher sleep'`],
])(
  'the loss of the connection that %s delays a write until the poll at most, and the next ones not at all',
  async (_name, which) => {
    for (let round = 0; round < 5; round += 1) {
      const cut = await sql.unsafe(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and ${which}`);
      expect(cut.length).toBe(1);
      expect(await waitOfOneWrite()).toBeLessThan(FLOOR_MS + SOON_MS);
      // Whatever is made anew is there once a few writes are through.
      await untilWritesAreSoon();
    }
  },
);

test('a publisher that is killed or frozen in its sleep is stood in for by another', async () => {
  const standby = await startPublisher();
  try {
    await untilWritesAreSoon();
    publisher.kill('SIGSTOP');
    // Frozen awake, writers do not notify: then the other one finds them when it looks.
    for (let index = 0; index < 5; index += 1) expect(await waitOfOneWrite()).toBeLessThan(FLOOR_MS + SOON_MS);
    publisher.kill('SIGKILL');
    expect(await waitOfOneWrite()).toBeLessThan(FLOOR_MS + SOON_MS);
    await untilWritesAreSoon();
  } finally {
    standby.end();
    await standby.exit;
  }
});

/** Writes, and waits for its event. Milliseconds, by the database's clock. */
async function waitOfOneWrite(): Promise<number> {
  const [row] = await sql<{ uid: string }[]>`insert into plumbline.resource (tenant, api_group, kind, name)
    values ('yellow', 'example.dev', 'Widget', ${`one-${crypto.randomUUID()}`}) returning uid`;
  return vi.waitFor(
    async () => {
      const [event] = await sql<{ wait: number }[]>`
      select (extract(epoch from published_at - occurred_at) * 1000)::float8 as wait
      from plumbline.event_log where uid = ${row?.uid ?? ''}`;
      if (!event) throw new Error('a write was not published');
      return event.wait;
    },
    { timeout: 10_000, interval: 5 },
  );
}

/** Until three writes in a row did not wait. @throws when it takes too long. */
async function untilWritesAreSoon(): Promise<void> {
  const deadline = performance.now() + 15_000;
  for (let soon = 0; soon < 3;) {
    if (performance.now() > deadline) throw new Error('writes still wait for the poll');
    soon = (await waitOfOneWrite()) < SOON_MS / 2 ? soon + 1 : 0;
  }
}

async function startPublisher(): Promise<Child> {
  const child = startChild('test/support/publisher-process.ts', [database.url, 'resident']);
  expect(await child.nextLine()).toBe('ready');
  return child;
}

/** From the capture of each event to its publication, in milliseconds of the database's clock, sorted. */
async function waitsOf(tenants: readonly string[]): Promise<readonly number[]> {
  const rows = await sql<{ wait: number }[]>`
    select (extract(epoch from published_at - occurred_at) * 1000)::float8 as wait
    from plumbline.event_log where tenant = any (${[...tenants]}) order by wait`;
  return rows.map((row) => Math.round(row.wait));
}
