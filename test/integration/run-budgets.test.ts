/** Scheduled runs whose time is over in the middle: they end, hold nothing, and the next one goes on. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresOrphans } from '#adapters/postgres/orphans.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import type { WorkUpkeep } from '#core/ports/work-queue.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { doUpkeep } from '#functions/reconcile/run-upkeep.ts';
import {
  type Context,
  prepareReconciling,
  probeKind,
  type Reconciling,
  type TestDriver,
} from '#test/support/reconciling.ts';

/** Told from every other timer by its length. */
const BUDGET_MS = 123_457;
const CONCURRENCY = 2;
/** As the mapper takes them, and the collector. */
const PAGE = 200;
const COLLECTED_AT_ONCE = 50;

let world: Reconciling;
let driver: TestDriver;
/** The budget is over, now. */
let endBudget: () => void;
let reconcile: (ctx: Context) => Promise<void>;
let onMap: () => void;
const source = probeKind('Source');
const probe = probeKind('Probe', {
  name: 'probe',
  watches: [
    {
      kind: source,
      map() {
        onMap();
        return [{ name: 'p-1' }];
      },
    },
  ],
  reconcile: (ctx) => reconcile(ctx),
});

beforeAll(async () => {
  world = await prepareReconciling([source, probe]);
  await postgresRetention(world.sql).prepare();
});
beforeEach(() => {
  driver = world.driver({ concurrency: CONCURRENCY });
  reconcile = async () => undefined;
  onMap = () => undefined;
  const setTimer = globalThis.setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((ring: () => void, ms: number) => {
    if (ms === BUDGET_MS) endBudget = ring;
    return setTimer(ring, ms);
  }) as typeof setTimeout);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.clear();
});
afterAll(() => world.close());

/** One run. @returns how many passes it ran. */
const run = (deps = driver): Promise<number> => runOnce(deps, { budgetMs: BUDGET_MS });

async function insert(kind: string, count: number, owner?: string): Promise<void> {
  await world.sql`insert into plumbline.resource (tenant, api_group, kind, name, owner_references)
    select 'acme', 'example.dev', ${kind}, left(lower(${kind}), 1) || '-' || n, coalesce(
      (select jsonb_build_array(jsonb_build_object('apiVersion', 'example.dev/v1', 'kind', kind, 'name', name, 'uid', uid))
        from plumbline.resource where name = ${owner ?? ''}), '[]')
    from generate_series(1, ${count}::int) n`;
}

async function count(of: 'due' | 'held' | 'unmapped' | 'sources'): Promise<number> {
  const { sql } = world;
  const from = {
    due: sql`plumbline.work_item where class < 3`,
    held: sql`plumbline.pass_lease where expires_at > clock_timestamp()`,
    unmapped: sql`plumbline.watch_change`,
    sources: sql`plumbline.resource where kind = 'Source'`,
  }[of];
  return (await sql`select from ${from}`).length;
}

describe('a run of passes', () => {
  test('begins none when its time is over, waits for those that run, and gives their leases back', async () => {
    await insert('Probe', 7);
    let passes = 0;
    reconcile = async () => {
      passes += 1;
      if (passes > CONCURRENCY) endBudget();
    };
    const first = await run();
    expect(first).toBe(passes);
    expect(first).toBeLessThan(7);
    expect(await count('held')).toBe(0);
    expect(await count('due')).toBe(7 - first);
    reconcile = async () => undefined;
    expect(await run()).toBe(7 - first);
    expect(await count('due')).toBe(0);
  });

  test('maps no further page of changes', async () => {
    await insert('Source', 2 * PAGE + 50);
    onMap = () => endBudget();
    expect(await run()).toBe(0);
    expect(await count('unmapped')).toBe(PAGE + 50);
    onMap = () => undefined;
    await run();
    expect(await count('unmapped')).toBe(0);
  });

  test('collects no further objects without an owner', async () => {
    await insert('Probe', 1);
    await insert('Source', 3 * COLLECTED_AT_ONCE, 'p-1');
    await run();
    await world.delete('Probe', 'p-1');
    const { upkeep } = driver;
    const collect = async (): Promise<number> => {
      const handled = await upkeep.collect();
      if ((await count('sources')) < 3 * COLLECTED_AT_ONCE) endBudget();
      return handled;
    };
    await run({ ...driver, upkeep: { ...upkeep, collect } });
    expect(await count('sources')).toBeGreaterThan(0);
    await run();
    expect(await count('sources')).toBe(0);
  });

  test('that is told to stop before it begins does nothing', async () => {
    await insert('Probe', 1);
    expect(await runOnce(driver, { budgetMs: BUDGET_MS, signal: AbortSignal.abort() })).toBe(0);
    expect(await count('due')).toBe(1);
    expect(await count('held')).toBe(0);
  });
});

test('housekeeping begins nothing more when its time is over', async () => {
  const stop = new AbortController();
  const begun: string[] = [];
  const upkeep = Object.fromEntries(
    Object.entries(driver.upkeep).map(([name, call]) => [
      name,
      async (...args: never[]) => {
        begun.push(name);
        if (name === 'fillItems') stop.abort();
        return (call as (...given: never[]) => Promise<unknown>)(...args);
      },
    ]),
  ) as unknown as WorkUpkeep;
  const holder = 'test housekeeping';
  const [leases, orphans] = [postgresLeases(driver.sql, holder), postgresOrphans(driver.sql)];
  const onError = (error: unknown): void => expect.fail(String(error));
  await doUpkeep({ ...driver, upkeep, leases, orphans, onError }, stop.signal);
  expect(begun).toEqual(['reportAlive', 'fillItems']);
});

test('a run of the publisher finishes the batches that are under way, and the next one goes on behind them', async () => {
  const { sql } = world;
  const outbox = postgresOutbox(driver.sql);
  await publishOnce({ outbox });
  await insert('Source', 1_300);
  const [before] = await sql<{ seq: bigint }[]>`select coalesce(sum(last_seq), 0) as seq from plumbline.frontier`;
  const stop = new AbortController();
  const published = await publishOnce({ outbox, onPublished: () => stop.abort() }, stop.signal);
  expect(published).toBeGreaterThan(0);
  expect(published).toBeLessThan(1_300);
  const [open] = await sql<{ open: number }[]>`select count(*)::int as open from pg_stat_activity
    where datname = current_database() and application_name = 'test driver' and state <> 'idle'`;
  expect(open?.open).toBe(0);
  expect(await publishOnce({ outbox })).toBe(1_300 - published);
  const [after] = await sql<{ seq: bigint }[]>`select sum(last_seq) as seq from plumbline.frontier`;
  expect(BigInt(after?.seq ?? 0) - BigInt(before?.seq ?? 0)).toBe(1_300n);
  const broken = await sql`select stream from plumbline.event_log group by stream
    having min(seq) <> 1 or max(seq) <> count(*) or count(distinct event_id) <> count(*)`;
  expect([...broken]).toEqual([]);
});
