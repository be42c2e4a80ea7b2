/**
 * A Durable Object that owns the tails of the streams that its clients watch, and fans out. Sockets and timers live as
 * long as the object, which those of a plain worker do not. Without clients it lets go of all connections, so that the
 * platform can evict it.
 */

import { DurableObject, type env as bindings } from 'cloudflare:workers';
import { createNotices, type Notice, type Notices } from '#adapters/workers/notices.ts';
import { answerFailure } from '#infra/cloudflare/failure.ts';
import { edge, kindsOver, logger } from '#infra/cloudflare/installation.ts';
import { keepCounts, type Metric } from '#infra/cloudflare/kept-counts.ts';
import { openWatchInstance, type WatchInstance } from '#infra/cloudflare/watch-instance.ts';

/** Who reconnects finds the tails running. */
const LINGER_MS = 30_000;
const LOOK_EVERY_MS = 5_000;

export class WatchShard extends DurableObject<typeof bindings> {
  readonly #counts = keepCounts();
  #opening: Promise<WatchInstance> | undefined;
  #notices: Notices | undefined;
  #ticker: ReturnType<typeof setInterval> | undefined;
  #usedAtMs = 0;
  #inFlight = 0;

  async fetch(request: Request): Promise<Response> {
    this.#usedAtMs = Date.now();
    this.#inFlight += 1;
    try {
      const instance = await this.#open();
      return await instance.answer(request);
    } catch (error) {
      return await answerFailure(request, error);
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Something has changed. Answers whether anybody here wants to know. */
  async tell(notices: readonly Notice[]): Promise<boolean> {
    for (const notice of notices) this.#notices?.tell(notice);
    return this.#notices !== undefined;
  }

  /** What this shard has counted since it was evicted. */
  async metrics(): Promise<readonly Metric[]> {
    const instance = await this.#opening?.catch(() => undefined);
    return this.#counts.with(instance?.metrics);
  }

  #open(): Promise<WatchInstance> {
    if (this.#opening) return this.#opening;
    const name = this.ctx.id.name ?? '';
    const notices = createNotices();
    const opening = openWatchInstance({ edge, kindsOver, logger: logger.child({ shard: name }), name, notices });
    this.#opening = opening;
    this.#notices = notices;
    opening.catch(() => this.#forget());
    this.#ticker = setInterval(() => void this.#look(name, opening).catch(onError), LOOK_EVERY_MS);
    void this.#subscribe(name);
    return opening;

    function onError(error: unknown): void {
      logger.warn({ err: error, shard: name }, 'connections were not let go of as they should be');
    }
  }

  #forget(): void {
    clearInterval(this.#ticker);
    this.#opening = undefined;
    this.#notices = undefined;
  }

  async #look(name: string, opening: Promise<WatchInstance>): Promise<void> {
    const instance = await opening;
    if (this.#inFlight > 0 || instance.streams > 0) this.#usedAtMs = Date.now();
    const isUsed = Date.now() - this.#usedAtMs < LINGER_MS;
    if (isUsed && (await instance.isCurrent())) return this.#subscribe(name);
    if (this.#opening !== opening) return;
    this.#forget();
    await instance.stop();
    await this.#counts.keep(instance.metrics);
  }

  /** Again and again: whoever tells forgets when it is evicted. */
  async #subscribe(name: string): Promise<void> {
    await edge
      .background()
      .subscribe(name)
      .catch((error: unknown) =>
        logger.warn({ err: error, shard: name }, 'no news can be had; the log is looked at every second'),
      );
  }
}
