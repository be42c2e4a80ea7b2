/**
 * The Durable Object that works when no request waits for it: it publishes and reconciles. It is called after each write,
 * by cron, and by its own alarm when something is due later or it died amid a run. Being one, it never works beside
 * itself; beside resident publishers and reconcilers elsewhere it is one more, for leases and locks lie in the database.
 */

import { DurableObject, type env as bindings } from 'cloudflare:workers';
import type { CheckResult } from '#adapters/node/readiness.ts';
import type { Notice } from '#adapters/workers/notices.ts';
import { createOwnMetrics } from '#adapters/node/metrics.ts';
import { openBackgroundWork, type BackgroundWork } from '#infra/cloudflare/background-work.ts';
import { edge, kindsOver, logger } from '#infra/cloudflare/installation.ts';
import { keepCounts, type Metric, sumOf } from '#infra/cloudflare/kept-counts.ts';
import { onceMore } from '#infra/cloudflare/once-more.ts';
import type { Tally } from '#infra/cloudflare/tally.ts';
import { toldElsewhere } from '#infra/cloudflare/told-elsewhere.ts';
import { createWakeUps } from '#infra/cloudflare/wake-ups.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';

/** Connections are kept for the next write; held longer they would keep this object from being evicted. */
const LINGER_MS = 10_000;
/** What is due and another process has is not asked for all the time. */
const SOONEST_MS = 250;
/** Behind a run that failed, and twice as long behind the next. */
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;
const WORKS = ['publish', 'keepTopics', 'reconcile'] as const;
type Work = (typeof WORKS)[number];

export class Background extends DurableObject<typeof bindings> {
  readonly #shards = new Set<string>();
  readonly #counts = keepCounts();
  /** Of all isolates. */
  readonly #answers = createOwnMetrics(toldElsewhere);
  readonly #wakeUps = createWakeUps<Work>(this.ctx.storage, WORKS);
  readonly #publish = this.#repeatable('publish');
  readonly #keepTopics = this.#repeatable('keepTopics');
  readonly #reconcile = this.#repeatable('reconcile');
  #work: Promise<BackgroundWork> | undefined;
  #users = 0;
  #closing: ReturnType<typeof setTimeout> | undefined;

  /** Something was written. Resolves when it is published, and what it made due is done. */
  async kick(): Promise<void> {
    // What fails does not keep the others from their work.
    const ends = await Promise.allSettled([this.#publish(), this.#keepTopics(), this.#reconcile()]);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /** What cron calls: also what is due for its age alone. */
  async scheduled(): Promise<void> {
    const failures: unknown[] = [];
    const steps = [
      () => this.#leaveOtherLog(),
      // Housekeeping takes its time; what was written does not wait for it.
      () => this.kick(),
      () => this.#with((work) => work.upkeep()),
      // What it made due.
      () => this.kick(),
    ];
    for (const step of steps) await step().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  /** Never rejects: what failed has set the next one. */
  async alarm(): Promise<void> {
    try {
      if (await this.#wakeUps.rang()) await this.kick();
    } catch (error) {
      logger.warn({ err: error }, 'publishing or reconciling failed; it is tried again');
    }
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
    try {
      return await this.#with((work) => work.readiness());
    } catch (error) {
      return [{ name: 'background', status: 'not ready', reason: messageOf(error) }];
    }
  }

  /** What the database knows, as far as it can be asked, and what was counted here. */
  async metrics(): Promise<readonly Metric[]> {
    const own = await this.#with((work) => this.#counts.with(work.registry)).catch(() => this.#counts.with(undefined));
    return sumOf([own, await this.#answers.registry.getMetricsAsJSON()]).getMetricsAsJSON();
  }

  /** Work that tells when it is due again, which an alarm then sees to. When it fails it is due again, too. */
  #repeatable(name: Work): () => Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    return onceMore(async () => {
      await this.#wakeUps.begins(name);
      try {
        const nextMs = await this.#with((work) => work[name]());
        retryMs = FIRST_RETRY_MS;
        await this.#wakeUps.ends(name, nextMs === undefined ? undefined : Math.max(nextMs, SOONEST_MS));
      } catch (error) {
        await this.#wakeUps.ends(name, retryMs);
        retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
        throw error;
      }
    });
  }

  /** What is under way then ends as it can: no event is written into the wrong log, for the database says where. */
  async #leaveOtherLog(): Promise<void> {
    if (!(await this.#with((work) => work.isCurrent()))) await this.#close();
  }

  async #with<T>(use: (work: BackgroundWork) => Promise<T>): Promise<T> {
    clearTimeout(this.#closing);
    this.#users += 1;
    this.#work ??= openBackgroundWork({
      edge,
      kindsOver,
      logger,
      onNews: (notices) => void this.#tell(notices),
      onWritten: () =>
        void this.#publish().catch((error: unknown) =>
          logger.warn({ err: error }, 'publishing failed; it is tried again'),
        ),
    });
    const work = this.#work;
    work.catch(() => this.#forget(work));
    try {
      return await use(await work);
    } finally {
      this.#users -= 1;
      if (this.#users === 0) this.#closing = setTimeout(() => void this.#close(), LINGER_MS);
    }
  }

  #forget(work: Promise<BackgroundWork>): void {
    if (this.#work === work) this.#work = undefined;
  }

  /** What could not be opened has forgotten itself. */
  async #close(): Promise<void> {
    const opening = this.#work;
    this.#work = undefined;
    const work = await opening?.catch(() => undefined);
    if (!work) return;
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
