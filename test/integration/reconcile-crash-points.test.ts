/** A scheduled reconciler that meets an accident between any two of its awaits: the next one makes everything true. */

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { type Accident, accidentAt, type Step } from '#test/support/accident.ts';
import { busyKinds, makeBusy, whatCameOf } from '#test/support/busy-objects.ts';
import { type CrashPoints, startCrashPoints } from '#test/support/crash-points.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { type FencedThings, fencedThings } from '#test/support/fenced-things.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';
import { prepareReconciling, type Reconciling, type TestDriver } from '#test/support/reconciling.ts';

const LEASE_MS = 10_000;
const BUDGET_MS = 30_000;
const TIMEOUT_MS = 120_000;
const OVERLAPPING_ROUNDS = 10;
/** Of the steps that have been tried by their first time. */
const SHARE = 0.2;
const CALLS = [
  'upkeep.installation',
  'upkeep.reportAlive',
  'upkeep.collect',
  'queue.watchChanges',
  'queue.finishWatchChanges',
  'queue.claim',
  'queue.addFinalizer',
  'queue.finish',
  'objects.list',
  'objects.applyChild',
  'objects.removeChild',
  'things.begin',
  'things.read',
  'things.put',
  'things.remove',
  'things.end',
];

const random = seededRandom(testSeed());
let world: Reconciling;
let unlucky: TestDriver;
let lucky: TestDriver;
let things: FencedThings;
/** What comes of the objects when nothing happens, and the steps to it. */
let peace: object;
let steps: readonly Step[];
let crashes: CrashPoints;

beforeAll(async () => {
  crashes = await startCrashPoints();
  world = await prepareReconciling(busyKinds(fencedThings().as('nobody')));
  unlucky = world.driver({ leaseMs: LEASE_MS });
  lucky = world.driver({ leaseMs: LEASE_MS });
  await postgresRetention(world.sql).prepare();
  await begin();
  const accident = accidentAt(undefined, () => 'goes on');
  await run(accident);
  peace = await whatCameOf(world, things);
  expect([...accident.times.keys()].toSorted()).toEqual(
    CALLS.flatMap((call) => [`${call} asked`, `${call} answered`]).toSorted(),
  );
  steps = [...accident.times]
    .flatMap(([name, times]) => Array.from({ length: times }, (_, index) => ({ name, time: index + 1 })))
    .filter(({ time }) => isEverywhere || time === 1 || random.chance(SHARE));
});
afterAll(async () => {
  await world.close();
  await crashes.stop();
});

async function begin(): Promise<void> {
  await world.clear();
  things = fencedThings();
  await makeBusy(world, runNext);
}

async function runNext(): Promise<void> {
  await runOnce({ ...lucky, kinds: busyKinds(things.as('lucky')) }, { budgetMs: BUDGET_MS });
}

/** A run whose accident may happen. */
async function run(accident: Accident, signal?: AbortSignal, driver: TestDriver = unlucky): Promise<void> {
  const deps = {
    ...driver,
    kinds: busyKinds(accident.around(things.as('unlucky'), 'things')),
    queue: accident.around(driver.queue, 'queue'),
    objects: accident.around(driver.objects, 'objects'),
    upkeep: accident.around(driver.upkeep, 'upkeep'),
  };
  await runOnce(deps, { budgetMs: BUDGET_MS, ...(signal && { signal }) });
}

async function judge(at: string): Promise<void> {
  expect(await whatCameOf(world, things), at).toEqual(peace);
  expect(things.overlaps, at).toBe(0);
}

function passesBegun({ times }: Accident): number {
  return times.get('things.begin asked') ?? 0;
}

/** How long the longest lease still holds, in milliseconds. */
async function longestLeaseMs(): Promise<number> {
  const [row] = await world.sql<{ ms: number }[]>`
    select coalesce(max(extract(epoch from expires_at - clock_timestamp()) * 1000), 0)::float8 as ms
    from plumbline.pass_lease where expires_at > clock_timestamp()`;
  return row?.ms ?? 0;
}

/** Streams whose numbers have a gap or an event twice, and events that say what the one before them said of the object. */
async function judgeLog(): Promise<void> {
  await publishOnce({ outbox: postgresOutbox(world.sql) });
  const broken = await world.sql`
    select stream from plumbline.event_log group by stream
    having min(seq) <> 1 or max(seq) <> count(*) or count(distinct event_id) <> count(*)`;
  const repeated = await world.sql`
    select kind, name, said from (
      select kind, name, said, lag(said) over (partition by stream, uid order by seq) as before from plumbline.event_log,
        lateral (select jsonb_build_object('type', type, 'generation', generation, 'finalizers', finalizers,
          'deleting', deletion_timestamp, 'labels', labels, 'owners', owner_references, 'spec', spec, 'status', status) as said)
    ) each where said = before`;
  expect({ broken: [...broken], repeated: [...repeated] }).toEqual({ broken: [], repeated: [] });
}

test(
  'a run that stands still at any step leaves everything to the next, and writes nothing when it goes on',
  async () => {
    let happened = 0;
    for (const step of steps) {
      const at = `${step.name}, time ${step.time}, PLUMBLINE_TEST_SEED=${random.seed}`;
      await begin();
      const accident = accidentAt(step, () => 'stands still');
      const running = run(accident);
      await Promise.race([accident.happened, running]);
      await accident.quiet();
      if (accident.stuck.length > 0) happened += 1;
      expect(await longestLeaseMs(), at).toBeLessThanOrEqual(LEASE_MS);
      await world.expireLeases();
      things.giveUp('unlucky');
      await runNext();
      await judge(at);

      // If its clock stood still too, it does not know that its leases are over.
      const oversleptMs = random.pick([0, LEASE_MS]);
      const versions = await world.versions();
      const underWay = accident.stuck.filter((name) => /^things\.(begin|put|remove) asked$/.test(name)).length;
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + oversleptMs);
      accident.goOn();
      await running;
      vi.restoreAllMocks();
      await judge(at);
      expect(await world.versions(), at).toBe(versions);
      // What was sent already cannot be stopped; nothing more is sent by who knows that it is too late.
      if (oversleptMs > 0) expect(things.refused, at).toBeLessThanOrEqual(underWay);
    }
    expect(happened).toBeGreaterThan(steps.length * 0.9);
    await judgeLog();
  },
  TIMEOUT_MS,
);

test(
  'a run that is told to stop at any step gives everything back, and the next one does the rest',
  async () => {
    for (const step of steps) {
      const at = `${step.name}, time ${step.time}`;
      await begin();
      const stop = new AbortController();
      let begun: number | undefined;
      const accident = accidentAt(step, () => {
        stop.abort();
        begun = passesBegun(accident);
        return 'goes on';
      });
      await run(accident, stop.signal);
      expect(await longestLeaseMs(), at).toBe(0);
      // None acts once it was told.
      if (begun !== undefined) expect(passesBegun(accident), at).toBe(begun);
      await runNext();
      await judge(at);
    }
    await judgeLog();
  },
  TIMEOUT_MS,
);

test('runs that overlap do everything once between them', async () => {
  for (let round = 0; round < OVERLAPPING_ROUNDS; round += 1) {
    await begin();
    await Promise.all([run(accidentAt(undefined, () => 'goes on')), runNext(), runNext()]);
    expect(await whatCameOf(world, things)).toEqual(peace);
    expect({ refused: things.refused, overlaps: things.overlaps }).toEqual({ refused: 0, overlaps: 0 });
  }
  await judgeLog();
});

test(
  'a run that loses its connections at any answer of the server leaves at most what the next one does',
  async () => {
    const databaseUrl = Object.assign(new URL(world.url), { port: String(crashes.proxyPort) }).href;
    const driver = world.driver({ databaseUrl, leaseMs: LEASE_MS });
    let answer = 0;
    for (let hasCut = true; hasCut; hasCut = crashes.hasCut) {
      answer += isEverywhere ? 1 : random.int(1, 3);
      crashes.arm(Infinity);
      await begin();
      crashes.arm(answer);
      await run(
        accidentAt(undefined, () => 'goes on'),
        undefined,
        driver,
      ).catch(() => undefined);
      things.giveUp('unlucky');
      // The server has to notice that a session is gone.
      await expect.poll(theNext, { timeout: 10_000, message: `answer ${answer}` }).toEqual(peace);
      expect(things.overlaps, `answer ${answer}`).toBe(0);
    }
    expect(answer).toBeGreaterThan(20);
    await judgeLog();
  },
  TIMEOUT_MS,
);

async function theNext(): Promise<object> {
  await world.expireLeases();
  await runNext();
  return whatCameOf(world, things);
}
