/**
 * Why a pass must end at once: its time is up, its lease is lost, or the process stops. And the local guess at how long
 * the lease still holds: a process that was frozen and wakes up finds it over before it was told.
 */

/** The reasons of the signal's abort. */
export class PassTimedOut extends Error {
  override readonly name = 'PassTimedOut';
}

/** Somebody else may act on the object now; nothing that this pass writes is taken any more. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** The pass begins again elsewhere, or after the next start. */
export class ProcessStops extends Error {
  override readonly name = 'ProcessStops';
}

export class PassSignal {
  readonly #abort = new AbortController();
  /** On the clock of `performance.now()`, which runs on while the process is frozen. */
  #heldUntilMs: number;

  /** @param heldForMs how long the lease holds from now on at least. */
  constructor(heldForMs: number) {
    this.#heldUntilMs = performance.now() + heldForMs;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isHeld(): boolean {
    return performance.now() < this.#heldUntilMs;
  }

  /** @param untilMs counted from before the renewal was asked for. */
  extend(untilMs: number): void {
    this.#heldUntilMs = untilMs;
  }

  end(reason: PassTimedOut | LeaseLost | ProcessStops): void {
    this.#abort.abort(reason);
  }

  /** @throws {LeaseLost | PassTimedOut | ProcessStops} when the pass must not go on. */
  assertHeld(): void {
    if (!this.isHeld && !this.signal.aborted) this.end(new LeaseLost('the lease ran out before it was renewed'));
    this.signal.throwIfAborted();
  }
}
