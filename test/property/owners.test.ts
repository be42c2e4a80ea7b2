import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import {
  addObject,
  type Collector,
  collectUntilQuiet,
  ownersByName,
  type Policy,
  remove,
  setOwners,
  startCollector,
} from '#test/support/owned-objects.ts';
import { type Random, seededRandom, testSeed } from '#test/support/random.ts';

const ROUNDS = 40;
const OBJECTS = 14;
const FINALIZER = 'example.dev/held';
const seed = testSeed();

/** Names of objects, and of their owners. */
type Graph = Record<string, string[]>;

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme']);
  ({ sql } = database);
});

afterAll(() => database.close());

describe(`random graphs of owners (PLUMBLINE_TEST_SEED=${seed})`, () => {
  test('end as the model says, with two collectors at once of which one is killed, and objects that end late', async () => {
    const random = seededRandom(seed);
    for (let round = 0; round < ROUNDS; round++) {
      const graph = await makeGraph(random, 0.3);
      const names = Object.keys(graph);
      const errors: unknown[] = [];
      const collectors = [0, 1].map(() => startCollector(database.url, sql, (error) => errors.push(error)));
      const holder = endLate();
      const removed = names.filter(() => random.chance(0.25));
      await Promise.all([
        ...removed.map((name) => remove(sql, name, random.pick<Policy>(['Background', 'Foreground']))),
        replace(collectors),
      ]);
      await untilSettled();
      await Promise.all(collectors.map((collector) => collector.stop()));
      await holder.stop();
      expect(await ownersByName(sql), `round ${round}: removed ${removed.join(', ')}`).toEqual(
        modelOf(graph, new Set(removed)),
      );
      await expectQuiet();
      expect(errors).toEqual([]);
      await clear();

      async function replace(running: Collector[]): Promise<void> {
        const [victim] = running.splice(
          0,
          1,
          startCollector(database.url, sql, (error) => errors.push(error)),
        );
        await victim?.kill();
      }
    }
  });

  test('end as the model says after each deletion of any policy', async () => {
    const random = seededRandom(seed + 1);
    for (let round = 0; round < ROUNDS; round++) {
      let model = await makeGraph(random, 0);
      for (let step = 0; step < 6 && Object.keys(model).length > 0; step++) {
        const name = random.pick(Object.keys(model));
        const policy = random.pick<Policy>(['Background', 'Foreground', 'Orphan']);
        await remove(sql, name, policy);
        await collectUntilQuiet(sql);
        model = policy === 'Orphan' ? without(model, name) : modelOf(model, new Set([name]));
        expect(await ownersByName(sql), `round ${round}, step ${step}: ${policy} ${name}`).toEqual(model);
      }
      await expectQuiet();
      await clear();
    }
  });
});

/** Edges in all directions: cycles, and objects that own themselves, are among them. */
async function makeGraph(random: Random, heldShare: number): Promise<Graph> {
  const names = Array.from({ length: OBJECTS }, (_, index) => `o${String(index).padStart(2, '0')}`);
  const graph: Graph = {};
  for (const name of names) {
    await addObject(sql, name, { finalizers: random.chance(heldShare) ? [FINALIZER] : [] });
    graph[name] = random.chance(0.3) ? [] : names.filter(() => random.chance(0.12));
  }
  for (const [name, owners] of Object.entries(graph)) {
    if (owners.length > 0) await setOwners(sql, name, owners);
  }
  return graph;
}

/** Gone is what was removed, and what had owners that are all gone; the rest keeps the owners that are there. */
function modelOf(graph: Graph, removed: ReadonlySet<string>): Graph {
  const gone = new Set(removed);
  for (let before = -1; before !== gone.size;) {
    before = gone.size;
    for (const [name, owners] of Object.entries(graph)) {
      if (owners.length > 0 && owners.every((owner) => gone.has(owner))) gone.add(name);
    }
  }
  return Object.fromEntries(
    Object.entries(graph)
      .filter(([name]) => !gone.has(name))
      .map(([name, owners]) => [name, owners.filter((owner) => !gone.has(owner))]),
  );
}

function without(graph: Graph, gone: string): Graph {
  const rest = Object.entries(graph).filter(([name]) => name !== gone);
  return Object.fromEntries(rest.map(([name, owners]) => [name, owners.filter((owner) => owner !== gone)]));
}

/** Takes the finalizer off, as a controller that is done does. */
function endLate(): { stop(): Promise<void> } {
  let isStopped = false;
  const running = run();
  return {
    async stop() {
      isStopped = true;
      await running;
    },
  };

  async function run(): Promise<void> {
    while (!isStopped) {
      await sql`update plumbline.resource set finalizers = array_remove(finalizers, ${FINALIZER}) where uid in (
        select uid from plumbline.resource where deletion_timestamp is not null and ${FINALIZER} = any (finalizers)
        order by random() limit 1)`;
    }
  }
}

async function untilSettled(): Promise<void> {
  await expect
    .poll(
      async () => {
        const [row] = await sql<{ left: number }[]>`
        select ((select count(*) from plumbline.owner_change)
          + (select count(*) from plumbline.resource where deletion_timestamp is not null))::integer as left`;
        return row?.left;
      },
      { timeout: 20_000, interval: 10 },
    )
    .toBe(0);
}

/** The sweep finds nothing that was forgotten. */
async function expectQuiet(): Promise<void> {
  await sql`select plumbline.sweep_owners(null, 1000)`;
  expect(await sql`select uid from plumbline.owner_change`).toEqual([]);
}

async function clear(): Promise<void> {
  await sql`update plumbline.resource set finalizers = '{}' where tenant = 'acme' and finalizers <> '{}'`;
  await sql`delete from plumbline.resource where tenant = 'acme'`;
  await collectUntilQuiet(sql);
}
