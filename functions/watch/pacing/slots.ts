/** A bound on how many calls run at once; the others wait in order. */

export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** @throws the signal's reason, when it aborts while the call waits: then it is not made, and nobody waits for it. */
  async run<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    try {
      return await call();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#free += 1;
    }
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const begin = (): void => {
      signal?.removeEventListener('abort', leave);
      this.#waiting.delete(begin);
      turn.resolve();
    };
    const leave = (): void => {
      this.#waiting.delete(begin);
      turn.reject(signal?.reason as Error);
    };
    this.#waiting.add(begin);
    signal?.addEventListener('abort', leave, { once: true });
    await turn.promise;
  }
}
