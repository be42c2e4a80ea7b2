/** The job queues that the reconciler is compared with: jobs that do nothing, added before the clock starts. */

import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { PgBoss } from 'pg-boss';
import type { Sql } from '#adapters/postgres/client.ts';
import { pace } from '#test/bench/pace.ts';

const AT_ONCE = 2_000;
const quiet = new Logger(() => () => undefined);

/** Jobs per second of graphile-worker, one by one. */
export async function drainGraphile(url: string, sql: Sql, jobs: number, concurrency: number): Promise<number> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
  await utils.migrate();
  for (let n = 0; n < jobs; n += AT_ONCE) {
    await utils.addJobs(Array.from({ length: AT_ONCE }, (_, k) => ({ identifier: 'noop', payload: { n: n + k } })));
  }
  await utils.release();
  await sql`analyze graphile_worker._private_jobs`;
  await sql`checkpoint`;
  let count = 0;
  let startedAtMs = 0;
  let end = (): void => undefined;
  const isDone = new Promise<void>((resolve) => (end = resolve));
  const runner = await run({
    connectionString: url,
    logger: quiet,
    noHandleSignals: true,
    maxPoolSize: concurrency + 2,
    preset: { worker: { concurrentJobs: concurrency } },
    taskList: {
      noop() {
        count += 1;
        if (count === 1) startedAtMs = performance.now();
        if (count === jobs) end();
      },
    },
  });
  await isDone;
  const perSecond = jobs / ((performance.now() - startedAtMs) / 1_000);
  await runner.stop();
  return perSecond;
}

/** In milliseconds, from before the job is added until it runs. */
export async function graphileLatencies(url: string, perSecond: number, seconds: number): Promise<readonly number[]> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
  const found: number[] = [];
  const total = perSecond * seconds;
  let end = (): void => undefined;
  const isDone = new Promise<void>((resolve) => (end = resolve));
  const runner = await run({
    connectionString: url,
    logger: quiet,
    noHandleSignals: true,
    maxPoolSize: 12,
    preset: { worker: { concurrentJobs: 10 } },
    taskList: {
      timed(payload) {
        found.push(performance.now() - (payload as { readonly at: number }).at);
        if (found.length === total) end();
      },
    },
  });
  await pace(perSecond, total, () => void utils.addJob('timed', { at: performance.now() }));
  await isDone;
  await runner.stop();
  await utils.release();
  return found.slice(perSecond);
}

/** Jobs per second of pg-boss, fetched and completed one by one. */
export async function drainBoss(url: string, jobs: number, concurrency: number): Promise<number> {
  const boss = new PgBoss({ connectionString: url, max: concurrency + 2 });
  await boss.start();
  const name = `bench-${concurrency}`;
  await boss.createQueue(name);
  for (let n = 0; n < jobs; n += AT_ONCE) {
    await boss.insert(
      name,
      Array.from({ length: AT_ONCE }, (_, k) => ({ data: { n: n + k } })),
    );
  }
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: concurrency }, work));
  const perSecond = jobs / ((performance.now() - startedAtMs) / 1_000);
  await boss.stop({ graceful: false });
  return perSecond;

  async function work(): Promise<void> {
    for (let [job] = await boss.fetch(name); job; [job] = await boss.fetch(name)) await boss.complete(name, job.id);
  }
}
