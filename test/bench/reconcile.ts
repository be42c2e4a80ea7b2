/**
 * The reconciler beside job queues, on the same server in the same run: passes per second of a kind whose reconcile
 * function does nothing, from a change to the begin of its pass, and what 100,000 objects cost that are only looked at.
 */

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import * as v from 'valibot';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { postgresPassObjects } from '#adapters/postgres/pass-objects.ts';
import { postgresWorkQueue } from '#adapters/postgres/work-queue.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import { postgresWriterSleep } from '#adapters/postgres/writer-sleep.ts';
import { defineKind, type Kind } from '#core/kind.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import { runResidentReconciler } from '#functions/reconcile/resident-reconciler.ts';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';
import { drainBoss, drainGraphile, graphileLatencies } from '#test/bench/job-queues.ts';
import { pace } from '#test/bench/pace.ts';
import { type Finding, milliseconds, percentile, rate } from '#test/bench/report.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const JOBS = 20_000;
const RESYNCED = 100_000;
const PER_SECOND = 200;
const LATENCY_SECONDS = 8;
const LEASE_MS = 15_000;

export async function benchReconcile(): Promise<readonly Finding[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-bench-'));
  const server = await startEmbeddedPostgres({ dataDir, log: pino({ level: 'silent' }) });
  await migrate(server.url);
  const sql = connect(server.url, { applicationName: 'bench', maxConnections: 8 });
  try {
    const bench = await openBench(server.url, sql);
    const findings: Finding[] = [];
    for (const concurrency of [10, 50]) {
      const graphile = await drainGraphile(server.url, sql, JOBS, concurrency);
      const boss = await drainBoss(server.url, JOBS, concurrency);
      const ours = await bench.drain(JOBS, concurrency);
      process.stderr.write(
        `  ${concurrency}: ours ${rate(ours)}, graphile-worker ${rate(graphile)}, pg-boss ${rate(boss)}\n`,
      );
      const goal = concurrency === 10 ? 1.2 : 1.5;
      findings.push({
        what: `passes of a kind that does nothing, ${concurrency} at once`,
        figure: rate(ours),
        ratio: `${(ours / graphile).toFixed(1)} × graphile-worker (${rate(graphile)}), ${(ours / boss).toFixed(1)} × pg-boss (${rate(boss)})`,
        goal: `≥ ${goal} × graphile-worker`,
        met: ours >= goal * graphile,
      });
    }
    const batched = await bench.drain(JOBS, 200);
    findings.push({
      what: 'the same, 200 at once',
      figure: rate(batched),
      goal: '≥ 10,000/s',
      met: batched >= 10_000,
    });
    const latencies = await bench.latencies();
    const peers = await graphileLatencies(server.url, PER_SECOND, LATENCY_SECONDS);
    const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
    findings.push({
      what: `a change until its pass begins, at ${PER_SECOND}/s`,
      figure: `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}`,
      ratio: `graphile-worker p50 ${milliseconds(percentile(peers, 0.5))}, p99 ${milliseconds(percentile(peers, 0.99))}`,
      goal: 'p50 ≤ 5 ms, p99 ≤ 20 ms',
      met: p50 <= 5 && p99 <= 20,
    });
    findings.push(...(await bench.resync()));
    return findings;
  } finally {
    await sql.end({ timeout: 1 });
    await server.stop();
    await rm(dataDir, { recursive: true });
  }
}

interface Bench {
  /** Passes per second. */
  drain(jobs: number, concurrency: number): Promise<number>;
  /** In milliseconds. */
  latencies(): Promise<readonly number[]>;
  resync(): Promise<readonly Finding[]>;
}

async function openBench(url: string, sql: Sql): Promise<Bench> {
  let onPass = (_spec: { readonly at?: number | undefined }): void => undefined;
  const job = defineKind({
    group: 'bench.dev',
    version: 'v1',
    kind: 'Job',
    plural: 'jobs',
    scope: 'Namespaced',
    spec: v.object({ at: v.optional(v.number()) }),
    controllers: [
      {
        name: 'job',
        resyncMs: 86_400_000,
        async reconcile(ctx) {
          onPass(ctx.object.spec);
        },
      },
    ],
  });
  await registerKinds(url, [...SHIPPED_KINDS, job]);
  await sql`insert into plumbline.resource (tenant, api_group, kind, name) values ('system', 'plumbline.dev', 'Tenant', 'bench')`;
  await fill(0, JOBS);
  // Each has its first pass, which writes its status: what is measured is looking at what is as it should be.
  await drain(JOBS, 50, false);
  return { drain: (jobs, concurrency) => drain(jobs, concurrency), latencies, resync };

  async function fill(from: number, to: number): Promise<void> {
    for (let n = from; n < to; n += 5_000) {
      await sql`insert into plumbline.resource (tenant, api_group, kind, name)
        select 'bench', 'bench.dev', 'Job', 'job-' || n from generate_series(${n}::int, ${Math.min(n + 5_000, to) - 1}::int) n`;
    }
  }

  async function drain(jobs: number, concurrency: number, makeDue: boolean = true): Promise<number> {
    if (makeDue) await sql`update plumbline.work_item set due_at = clock_timestamp(), class = 3`;
    await sql`truncate plumbline.outbox`;
    await sql`vacuum analyze plumbline.work_item`;
    await sql`vacuum analyze plumbline.pass_lease`;
    await sql`checkpoint`;
    let count = 0;
    let startedAtMs = 0;
    await runUntil(concurrency, (done) => {
      onPass = () => {
        count += 1;
        if (count === 1) startedAtMs = performance.now();
        if (count === jobs) done();
      };
    });
    return jobs / ((performance.now() - startedAtMs) / 1_000);
  }

  /** Until it is done, and its last passes have ended. */
  async function runUntil(concurrency: number, start: (done: () => void) => Promise<void> | void): Promise<void> {
    const end = new AbortController();
    const pool = connect(url, { applicationName: 'bench reconciler', maxConnections: 6, role: 'plumbline_worker' });
    const deps = {
      queue: postgresWorkQueue(pool, { holder: randomUUID(), leaseMs: LEASE_MS }),
      objects: postgresPassObjects(pool),
      upkeep: postgresWorkUpkeep(pool),
      kinds: [job as Kind],
      logger: silentLogger,
      leaseMs: LEASE_MS,
      concurrency,
      sleep: postgresWriterSleep({ role: 'reconciler', databaseUrl: url, sql: pool, signal: end.signal }),
    };
    const isDone = new Promise<void>((resolve) => void start(resolve));
    const running = runResidentReconciler(deps, end.signal);
    await isDone;
    end.abort();
    await running;
    await pool.end({ timeout: 1 });
  }

  async function latencies(): Promise<readonly number[]> {
    const found: number[] = [];
    const total = PER_SECOND * LATENCY_SECONDS;
    await runUntil(10, async (done) => {
      onPass = ({ at }) => {
        if (at === undefined) return;
        found.push(performance.now() - at);
        if (found.length === total) done();
      };
      await pace(PER_SECOND, total, (n) => {
        const spec = JSON.stringify({ at: performance.now() });
        void sql`update plumbline.resource set spec = ${spec}::text::jsonb where api_group = 'bench.dev' and kind = 'Job'
          and tenant = 'bench' and name = ${`job-${n}`}`.then(() => undefined);
      });
    });
    return found.slice(PER_SECOND);
  }

  async function resync(): Promise<readonly Finding[]> {
    await fill(JOBS, RESYNCED);
    await drain(RESYNCED - JOBS, 100, false);
    const perSecond = await drain(RESYNCED, 100);
    const [size] = await sql<{ bytes: number }[]>`
      select ((pg_total_relation_size('plumbline.work_item') + pg_total_relation_size('plumbline.pass_lease'))
        / count(*))::int4 as bytes from plumbline.work_item`;
    const rss = Math.round(process.memoryUsage().rss / 1024 / 1024);
    return [
      {
        what: `${RESYNCED} live objects, all looked at anew`,
        figure: `${(RESYNCED / perSecond).toFixed(1)} s (${rate(perSecond)}); ${size?.bytes} bytes of queue each; process ${rss} MiB`,
        goal: '',
        met: undefined,
      },
    ];
  }
}
