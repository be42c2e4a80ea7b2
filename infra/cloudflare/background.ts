/**
 * The Durable Object that works when no request waits for it: it publishes and reconciles. It is called after each write,
 * by cron, and by its own alarm when something is due later. Being one, it never works beside itself; beside resident
 * publishers and reconcilers elsewhere it is one more, for leases and locks lie in the database.
 */

import { DurableObject, type env as bindings } from 'cloudflare:workers';
import type { CheckResult } from '#adapters/node/readiness.ts';
import type { Notice } from '#adapters/workers/notices.ts';
import { openBackgroundWork, type BackgroundWork } from '#infra/cloudflare/background-work.ts';
import { edge, kindsOver, logger } from '#infra/cloudflare/installation.ts';
import { onceMore } from '#infra/cloudflare/once-more.ts';
import type { Metric } from '#infra/cloudflare/watch-shard.ts';
import { messageOf } from '#infra/local/start-error.ts';

/** Connections are kept for the next write; held longer they would keep this object from being evicted. */
const LINGER_MS = 10_000;
/** What is due and another process has is not asked for all the time. */
const SOONEST_MS = 250;

export class Background extends DurableObject<typeof bindings> {
  readonly #shards = new Set<string>();
  readonly #publish = this.#repeatable((work) => work.publish());
  readonly #keepTopics = this.#repeatable((work) => work.keepTopics());
  readonly #reconcile = this.#repeatable((work) => work.reconcile());
  #work: Promise<BackgroundWork> | undefined;
  #users = 0;
  #closing: ReturnType<typeof setTimeout> | undefined;

  /** Something was written. Resolves when it is published, and what it made due is done. */
  async kick(): Promise<void> {
    await Promise.all([this.#publish(), this.#keepTopics(), this.#reconcile()]);
  }

  /** What cron calls: also what is due for its age alone. */
  async scheduled(): Promise<void> {
    // What is under way then ends as it can: no event is written into the wrong log, for the database says where.
    if (!(await this.#with((work) => work.isCurrent()))) this.#close();
    await this.#with((work) => work.upkeep());
    await this.kick();
  }

  async alarm(): Promise<void> {
    await this.kick();
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

  /** What the database knows, and what was counted here. */
  async metrics(): Promise<readonly Metric[]> {
    return this.#with((work) => work.metrics());
  }

  /** Work that tells when it is due again, which an alarm then sees to. */
  #repeatable(ask: (work: BackgroundWork) => Promise<number | undefined>): () => Promise<void> {
    return onceMore(async () => {
      const nextMs = await this.#with(ask);
      if (nextMs === undefined) return;
      const atMs = Date.now() + Math.max(nextMs, SOONEST_MS);
      const known = await this.ctx.storage.getAlarm();
      if (known === null || known > atMs) await this.ctx.storage.setAlarm(atMs);
    });
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
      if (this.#users === 0) this.#closing = setTimeout(() => this.#close(), LINGER_MS);
    }
  }

  #forget(work: Promise<BackgroundWork>): void {
    if (this.#work === work) this.#work = undefined;
  }

  #close(): void {
    const work = this.#work;
    this.#work = undefined;
    void work?.then(
      (opened) => opened.close(),
      () => undefined,
    );
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
