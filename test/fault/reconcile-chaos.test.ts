import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { createDrift } from '#test/fault/chaos/drift.ts';
import { startDrivers, type Drivers } from '#test/fault/chaos/drivers.ts';
import { readFailures } from '#test/fault/chaos/failures.ts';
import { historyOf } from '#test/fault/chaos/history.ts';
import { findLateReports, findOverlaps, findStepsBack } from '#test/fault/chaos/overlap.ts';
import { readServerLog, unexplained } from '#test/fault/chaos/server-log.ts';
import { type Deed, readTrail, type TrailLine } from '#test/fault/chaos/trail.ts';
import { findProblems } from '#test/fault/chaos/truth.ts';
import { createUsers } from '#test/fault/chaos/users.ts';
import { type ChaosWorld, openWorld } from '#test/fault/chaos/world.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';

/** `PLUMBLINE_TEST_CHAOS_SECONDS=300` for a long run. */
const CHAOS_MS = Number(process.env['PLUMBLINE_TEST_CHAOS_SECONDS'] ?? 60) * 1_000;
/** What failed again and again waits up to five minutes before it is tried again; in a minute of chaos it comes to one. */
const SETTLE_MS = 180_000 + CHAOS_MS;
const LOOK_EVERY_MS = 500;

let world: ChaosWorld;
let drivers: Drivers | undefined;

beforeAll(async () => {
  world = await openWorld();
});

afterAll(async () => {
  await drivers?.stop();
  await world?.close();
});

describe('the proof', () => {
  const line = (fencingToken: bigint, deed: Deed, other: Partial<TrailLine> = {}): TrailLine => {
    return { uid: 'a', fencingToken, controller: 'size', holder: 'one', deed, isRefused: false, atMs: 0, ...other };
  };
  const passes = [line(1n, 'begin'), line(1n, 'end'), line(2n, 'begin'), line(2n, 'change')];

  const late = line(2n, 'end', { isRefused: true, atMs: 5_010 });

  test('takes passes that follow each other, also after one that never ended, or came too late', () => {
    const trail = [...passes, line(3n, 'begin'), late, line(3n, 'end')];
    expect(findOverlaps(trail, [{ holder: 'one', fromMs: 0, toMs: 5_000 }])).toEqual({
      passes: 3,
      refused: 1,
      overlaps: [],
    });
  });

  test.each([
    ['an earlier pass goes on', line(1n, 'change')],
    ['an earlier pass begins', line(1n, 'begin')],
    ['a pass begins twice', line(2n, 'begin')],
    ['another controller has the same pass', line(2n, 'change', { controller: 'colour' })],
    ['another process has the same pass', line(2n, 'end', { holder: 'two' })],
    ['one comes too late that was never frozen', late],
    ['a pass changes something before it begins', line(3n, 'change')],
  ])('notices when %s', (_, wrong) => {
    expect(findOverlaps([...passes, wrong], []).overlaps).toHaveLength(1);
  });

  test('notices in the log of the server when an earlier pass defines something, and errors of others than by hand', () => {
    const said = (application: string, text: string): string =>
      `2026-11-30 01:00:00.000 UTC [7] app=${application} ${text}`;
    const text = [
      said('plumbline a 2', 'LOG:  statement: create role "x"'),
      said('plumbline b 1', 'LOG:  statement: create role "y";'),
      '\tcomment on role "y" is null',
      said('plumbline a 1', 'LOG:  statement: drop role "x"'),
      said('plumbline b 1', 'ERROR:  role "z" does not exist'),
      said('plumbline b 1', 'ERROR:  permission denied for table "t17"'),
      said('by hand', 'ERROR:  syntax error'),
    ].join('\n');
    const { definitions, stepsBack, errors } = readServerLog(text);
    expect({ definitions, stepsBack: stepsBack.length }).toEqual({ definitions: 3, stepsBack: 1 });
    expect([...errors.keys()]).toHaveLength(2);
    expect(unexplained(errors)).toEqual(['permission denied for table "…"']);
  });
});

test(
  'drivers that are killed and frozen at any moment make everything true, one pass of an object at a time',
  { timeout: CHAOS_MS + SETTLE_MS + 60_000 },
  async () => {
    const random = seededRandom(testSeed());
    const hint = `PLUMBLINE_TEST_SEED=${random.seed}`;
    const users = createUsers(world.sql, random.fork());
    const drift = createDrift(world, random.fork());
    drivers = await startDrivers(world.addresses);
    const chaos = AbortSignal.timeout(CHAOS_MS);
    await Promise.all([users.act(chaos), drift.make(chaos), drivers.harass(random.fork(), chaos)]);

    await users.tidy();
    await drift.tidy();
    const settledMs = await untilSettled();
    await drivers.stop();

    const { tally } = drivers;
    const trail = findOverlaps(await readTrail(world.trail), tally.freezes);
    const captured = await findStepsBack(world.sql);
    const reports = await findLateReports(world.sql);
    const log = readServerLog(await world.serverLog());
    const [counts] = await world.sql`select (select count(*) from plumbline.resource)::int as live,
      (select deadlocks from pg_stat_database where datname = current_database())::int as deadlocks`;
    const failures = await readFailures(world.sql);
    console.log(
      `${hint}: ${JSON.stringify({ ...users.report, drift: drift.report, ...counts })}\n` +
        `killed ${tally.killed}, frozen ${tally.freezes.length}, settled after ${Math.round(settledMs)} ms\n` +
        `${trail.passes} passes in the trail, ${trail.refused} deeds refused there, ${reports.fenced} writes fenced, ` +
        `${captured.events} events, ${log.definitions} statements on the server\n` +
        [tally.passes, failures, tally.errors, tally.logged, log.errors].map(listed).join('\n  --\n'),
    );

    expect(tally.deaths, hint).toEqual([]);
    expect(trail.overlaps, hint).toEqual([]);
    expect(log.stepsBack, hint).toEqual([]);
    expect(captured.wrong, hint).toEqual([]);
    expect(reports.late, hint).toEqual([]);
    expect(unexplained(log.errors), hint).toEqual([]);
    // Otherwise nothing was tried.
    expect(Math.min(tally.killed, tally.freezes.length, users.report.deleted, drift.report.done)).toBeGreaterThan(0);

    async function untilSettled(): Promise<number> {
      const begin = performance.now();
      for (;;) {
        const problems = await findProblems(world);
        const tookMs = performance.now() - begin;
        if (problems.length === 0) return tookMs;
        if (tookMs > SETTLE_MS) {
          throw new Error(
            `${hint}: not settled after ${SETTLE_MS} ms:\n${problems.join('\n')}\n${listed(drivers?.tally.errors)}\n` +
              (await historyOf(world, problems)),
          );
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    }
  },
);

function listed(counts: ReadonlyMap<string, number> | undefined): string {
  const entries = [...(counts ?? [])].toSorted(([, a], [, b]) => b - a);
  return entries.map(([what, count]) => `  ${count} × ${what}`).join('\n');
}
