import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { clientWith } from '#test/http/client.ts';
import { writeSteadily } from '#test/support/load.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { type Random, seededRandom, testSeed } from '#test/support/random.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';
import { headsOf, idsBetween, type Log, readLog, stateAfter } from '#test/property/seam/log.ts';
import {
  type SeenEvent,
  type SeenObject,
  takeChanges,
  takeInitialState,
  takeUntil,
} from '#test/property/seam/watching.ts';

const TENANTS = ['red', 'green', 'blue'];
const WRITES_PER_SECOND = 200;
const ROUNDS = 100;
const HISTORY = 500;
const seed = testSeed();

let database: TestDatabase;
let sql: Sql;
let instance: LocalInstance;
let token: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'test', maxConnections: 8 });
  instance = await startLocalInstance({ databaseUrl: database.url });
  await createTenants(sql, TENANTS);
  token = await instance.token({ roles: ['viewer'], tenants: TENANTS });
});

afterAll(async () => {
  await instance.stop();
  await sql.end();
  await database.drop();
});

describe(`under ${WRITES_PER_SECOND} writes a second (PLUMBLINE_TEST_SEED=${seed})`, () => {
  const rounds: { list: Round[]; initial: Round[] } = { list: [], initial: [] };
  let constant: readonly (readonly SeenEvent[])[];
  let log: Log;

  beforeAll(async () => {
    const random = seededRandom(seed);
    const watchers = await Promise.all([watch({}), watch({})]);
    const writing = new AbortController();
    const load = write(random.fork(), writing.signal);
    for (let round = 0; round < ROUNDS; round += 1) {
      const [list, initial] = await Promise.all([listAndWatch(random.int(1, 60)), watchInitially(random.int(1, 60))]);
      rounds.list.push(list);
      rounds.initial.push(initial);
    }
    writing.abort();
    await load;
    log = await readWholeLog();
    constant = await Promise.all(watchers.map((watcher) => takeUntil(watcher, headsOf(log))));
    await Promise.all(watchers.map((watcher) => watcher.close()));
  }, 120_000);

  test.each(['list', 'initial'] as const)('%s, then watch: no gap, no repeat, no step back', (way) => {
    const compared = rounds[way].reduce((sum, round) => sum + compareWithLog(round, log), 0);
    expect(compared).toBeGreaterThan(ROUNDS);
  });

  test('two watchers of the same scope see the same events', () => {
    for (const events of constant) {
      for (const tenant of TENANTS) {
        const ids = events.filter((event) => event.tenant === tenant).map((event) => event.id);
        expect(ids).toEqual(log.get(tenant)?.map((entry) => entry.id));
      }
    }
  });
});

test(`the cursor of each of ${HISTORY} events resumes with exactly the rest`, { timeout: 120_000 }, async () => {
  const before = headsOf(await readWholeLog());
  const watcher = await watch({});
  const writing = new AbortController();
  const load = write(seededRandom(seed), writing.signal);
  const history = await takeChanges(watcher, HISTORY);
  writing.abort();
  await load;
  await watcher.close();
  const log = await readWholeLog();

  const points = new Map(before);
  const cursors = history.map((event) => {
    points.set(event.tenant, event.seq);
    return { cursor: event.cursor, points: new Map(points) };
  });
  const waiting = cursors.entries();
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (const [index, resume] of waiting) await expectRest(resume, log, index % 2 === 0 ? 'from' : 'Last-Event-ID');
    }),
  );
});

/** What a client saw: a state, and the events behind it. */
interface Round {
  readonly state: readonly SeenObject[];
  readonly events: readonly SeenEvent[];
}

async function listAndWatch(count: number): Promise<Round> {
  const { body } = await clientWith(instance.baseUrl, `Bearer ${token}`).get('/apis/example.dev/v1/widgets');
  const cursor: unknown = body.metadata.cursor;
  if (typeof cursor !== 'string') throw new Error(`the list has no cursor: ${JSON.stringify(body.metadata)}`);
  const watcher = await watch({ from: cursor });
  const events = await takeChanges(watcher, count);
  await watcher.close();
  return {
    state: body.items.map(
      ({ metadata }: { metadata: { namespace: string; uid: string; resourceVersion: string } }) => ({
        tenant: metadata.namespace,
        uid: metadata.uid,
        version: metadata.resourceVersion,
      }),
    ),
    events,
  };
}

async function watchInitially(count: number): Promise<Round> {
  const watcher = await watch({ initial: 'true' });
  const round = { state: await takeInitialState(watcher), events: await takeChanges(watcher, count) };
  await watcher.close();
  return round;
}

/** In every tenant of which an event came: the events are the log's, and the state is the log's before them. */
function compareWithLog({ state, events }: Round, log: Log): number {
  const streams = Map.groupBy(events, (event) => event.tenant);
  for (const [tenant, seen] of streams) {
    const first = seen[0]?.seq ?? 0;
    expect(seen.map((event) => event.id)).toEqual(idsBetween(log, tenant, first, first + seen.length - 1));
    const shown = state.filter((object) => object.tenant === tenant);
    expect(Object.fromEntries(shown.map(({ uid, version }) => [uid, version]))).toEqual(
      stateAfter(log, tenant, first - 1),
    );
  }
  return streams.size;
}

async function expectRest(
  { cursor, points }: { readonly cursor: string; readonly points: ReadonlyMap<string, number> },
  log: Log,
  by: 'from' | 'Last-Event-ID',
): Promise<void> {
  const heads = headsOf(log);
  const unfinished = new Map([...heads].filter(([tenant, head]) => head > (points.get(tenant) ?? 0)));
  const watcher = by === 'from' ? await watch({ from: cursor }) : await watch({}, cursor);
  const rest = await takeUntil(watcher, unfinished);
  await watcher.close();
  for (const [tenant, head] of heads) {
    const ids = rest.filter((event) => event.tenant === tenant).map((event) => event.id);
    expect(ids).toEqual(idsBetween(log, tenant, (points.get(tenant) ?? 0) + 1, head));
  }
}

function watch(query: Readonly<Record<string, string>>, lastEventId: string = ''): Promise<SseClient> {
  return openSse(`${instance.baseUrl}/watch/v1/events?${new URLSearchParams(query).toString()}`, {
    token,
    lastEventId,
  });
}

async function write(random: Random, signal: AbortSignal): Promise<void> {
  await writeSteadily({ sql, tenants: TENANTS, objects: 40, writesPerSecond: WRITES_PER_SECOND, random }, signal);
}

/** Once everything is published. */
async function readWholeLog(): Promise<Log> {
  const isBehind = async (): Promise<boolean> => (await sql`select from plumbline.outbox limit 1`).length > 0;
  while (await isBehind());
  const log = await readLog(sql);
  return new Map([...log].filter(([tenant]) => TENANTS.includes(tenant)));
}
