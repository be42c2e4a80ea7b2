/** A call that is made again and again. At most one runs; one that was asked for meanwhile follows it. */

import { isUnavailable } from '#core/status-error.ts';

const RETRY_MS = 500;

export class Job {
  readonly #call: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  /** Who waits for the next one. */
  readonly #waiting: (() => void)[] = [];
  #isAsked = false;
  #isRunning = false;
  #isStopped = false;
  #notBeforeMs = 0;

  /** @param onError is not told that the database or the log is away. What failed is made again. */
  constructor(call: () => Promise<void>, onError: (error: unknown) => void) {
    this.#call = call;
    this.#onError = onError;
  }

  /** It is made as soon as it can be, and from its beginning: what is true now is seen. */
  ask(): void {
    this.#isAsked = true;
    this.tick();
  }

  /** The same; resolves when it was made, well or not, or cannot be made now. */
  async made(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.ask();
    });
  }

  /** What failed before may be tried again. */
  tick(): void {
    // Whoever waits goes on behind the call that still runs.
    if (this.#isRunning) return;
    if (this.#isStopped) this.#tell(this.#waiting.splice(0));
    else if (this.#isAsked) void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.tick();
  }

  async #run(): Promise<void> {
    const waiting = this.#waiting.splice(0);
    if (performance.now() < this.#notBeforeMs) {
      this.#tell(waiting);
      return;
    }
    this.#isRunning = true;
    this.#isAsked = false;
    try {
      await this.#call();
    } catch (error) {
      this.#isAsked = true;
      this.#notBeforeMs = performance.now() + RETRY_MS;
      if (!isUnavailable(error) && !this.#isStopped) this.#onError(error);
    }
    this.#isRunning = false;
    this.#tell(waiting);
    this.tick();
  }

  #tell(waiting: readonly (() => void)[]): void {
    for (const resolve of waiting) resolve();
  }
}
