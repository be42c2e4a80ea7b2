/**
 * Turns of the event loop for many that have work: all of them together have a few milliseconds of it, then everything
 * else of the process comes, and those that waited go on.
 */

const SLICE_MS = 4;

export class Turns {
  readonly #nowMs: () => number;
  readonly #waiting = new Set<() => void>();
  #isOpen = false;
  #endsAtMs = 0;

  /** @param nowMs milliseconds of a clock that only runs forward. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Whether the time is up: whoever works leaves the rest for its next turn. */
  get isOver(): boolean {
    return this.#nowMs() >= this.#endsAtMs;
  }

  /** Works now, or when there is time again; a piece of work that waits already waits once. */
  take(work: () => void): void {
    if (!this.#isOpen) this.#open();
    if (this.isOver) this.#waiting.add(work);
    else work();
  }

  #open(): void {
    this.#isOpen = true;
    this.#endsAtMs = this.#nowMs() + SLICE_MS;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isOpen = false;
    if (this.#waiting.size === 0) return;
    this.#open();
    for (const work of this.#waiting) {
      if (this.isOver) return;
      this.#waiting.delete(work);
      work();
    }
  }
}
