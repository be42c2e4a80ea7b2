/**
 * The Durable Object that works when no request waits for it: it publishes and reconciles. It is called after each write,
 * by cron, and by its own alarm when something is due later. Being one, it never works beside itself; beside resident
 * publishers and reconcilers elsewhere it is one more, for leases and locks lie in the database.
 */

import { DurableObject, type env as bindings } from 'cloudflare:workers';
import type { CheckResult } from '#adapters/node/readiness.ts';
import type { Notice } from '#adapters/workers/notices.ts';
import { createOwnMetrics } from '#adapters/node/metrics.ts';
import { createBackgroundWork, type BackgroundWork } from '#infra/cloudflare/background-work.ts';
import { edge, kindsOver, logger } from '#infra/cloudflare/installation.ts';
import { keepCounts, type Metric, sumOf } from '#infra/cloudflare/kept-counts.ts';
import { onceMore } from '#infra/cloudflare/once-more.ts';
import type { Tally } from '#infra/cloudflare/tally.ts';

/** Connections are kept for the next write; held longer they would keep this object from being evicted. */
const LINGER_MS = 10_000;
/** What is due and another process has is not asked for all the time. */
const SOONEST_MS = 250;
/** Behind a run that failed. When that fails too, the platform calls the alarm again, later each time. */
const RETRY_MS = 1_000;

export class Background extends DurableObject<typeof bindings> {
  readonly #shards = new Set<string>();
  readonly #counts = keepCounts();
  /** Of all isolates. */
  readonly #answers = createOwnMetrics(unknown);
  readonly #publish = onceMore(() => this.#with((work) => this.#publishWith(work)));
  readonly #reconcile = onceMore(() => this.#with((work) => this.#reconcileWith(work)));
  #work: BackgroundWork | undefined;
  #users = 0;
  #closing: ReturnType<typeof setTimeout> | undefined;

  /** Something was written. Resolves when it is published, and what it made due is done. */
  async kick(): Promise<void> {
    try {
      await this.#run();
    } catch (error) {
      await this.#wakeIn(RETRY_MS);
      throw error;
    }
  }

  /** What cron calls: also what is due for its age alone. */
  async scheduled(): Promise<void> {
    await this.#with((work) => work.upkeep());
    await this.kick();
  }

  async alarm(): Promise<void> {
    await this.#run();
  }

  /** An isolate has answered these. */
  async count({ answers, refused }: Tally): Promise<void> {
    for (const { seconds, code, method } of answers) {
      this.#answers.requests.observe({ method, code: String(code) }, seconds);
    }
    this.#answers.refusedByLimit.inc({ limit: 'requests' }, refused);
  }

  /** This shard has watchers, and is told what was published from now on, until it has none. */
  async subscribe(shard: string): Promise<void> {
    this.#shards.add(shard);
  }

  async readiness(): Promise<readonly CheckResult[]> {
    return this.#with((work) => work.readiness());
  }

  /** What the database knows, and what was counted here. */
  async metrics(): Promise<readonly Metric[]> {
    const own = await this.#with((work) => this.#counts.with(work.registry));
    return sumOf([own, await this.#answers.registry.getMetricsAsJSON()]).getMetricsAsJSON();
  }

  /** One that fails does not keep the other from its work. */
  async #run(): Promise<void> {
    const [published, reconciled] = await Promise.allSettled([this.#publish(), this.#reconcile()]);
    if (published.status === 'rejected') throw published.reason;
    if (reconciled.status === 'rejected') throw reconciled.reason;
  }

  async #publishWith(work: BackgroundWork): Promise<void> {
    if (await work.publish()) await this.#wakeIn(SOONEST_MS);
  }

  async #reconcileWith(work: BackgroundWork): Promise<void> {
    const nextMs = await work.reconcile();
    if (nextMs !== undefined) await this.#wakeIn(Math.max(nextMs, SOONEST_MS));
  }

  /** There is one alarm: whatever asks for the earliest has it, and the run then asks for the next. */
  async #wakeIn(milliseconds: number): Promise<void> {
    const atMs = Date.now() + milliseconds;
    const setMs = await this.ctx.storage.getAlarm();
    if (setMs === null || setMs > atMs) await this.ctx.storage.setAlarm(atMs);
  }

  async #with<T>(use: (work: BackgroundWork) => Promise<T>): Promise<T> {
    clearTimeout(this.#closing);
    this.#users += 1;
    this.#work ??= createBackgroundWork({
      edge,
      kindsOver,
      logger,
      onNews: (notices) => void this.#tell(notices),
      onPass: () =>
        void this.#publish().catch((error: unknown) =>
          logger.warn({ err: error }, 'publishing failed; it is tried again'),
        ),
    });
    const work = this.#work;
    try {
      return await use(work);
    } finally {
      this.#users -= 1;
      if (this.#users === 0) this.#closing = setTimeout(() => void this.#close(work), LINGER_MS);
    }
  }

  async #close(work: BackgroundWork): Promise<void> {
    this.#work = undefined;
    await this.#counts.keep(work.registry);
    await work.close();
  }

  async #tell(notices: readonly Notice[]): Promise<void> {
    await Promise.all(
      [...this.#shards].map(async (shard) => {
        const isHeard = await edge.watchShards
          .getByName(shard)
          .tell(notices)
          .catch(() => false);
        if (!isHeard) this.#shards.delete(shard);
      }),
    );
  }
}

async function unknown(): Promise<never> {
  throw new Error('told elsewhere');
}
