/**
 * Turns of the event loop for many that have work: all of them together have a few milliseconds of it, then everything
 * else of the process comes, and those that waited go on.
 */

export interface Worker {
  /** Works until it has done all or the time is up; then it asks for its next turn. */
  turn(): void;
}

export interface TurnsOptions {
  /** How long nobody works after each millisecond of work, while some wait. @default 0 */
  readonly restPerMs?: number;
  /** Milliseconds of a clock that only runs forward. */
  readonly nowMs?: () => number;
}

const SLICE_MS = 4;
/** One look for each event or so. Where the clock stands still while code runs, as on workerd, nothing else ends a slice. */
const MOST_LOOKS = 1_000;

export class Turns {
  readonly #restPerMs: number;
  readonly #nowMs: () => number;
  readonly #waiting = new Set<Worker>();
  #isOpen = false;
  #beganAtMs = -Infinity;
  #looks = 0;

  constructor({ restPerMs = 0, nowMs = () => performance.now() }: TurnsOptions = {}) {
    this.#restPerMs = restPerMs;
    this.#nowMs = nowMs;
  }

  /** Whether the time is up: whoever works leaves the rest for its next turn. */
  get isOver(): boolean {
    this.#looks += 1;
    return this.#looks > MOST_LOOKS || this.#nowMs() >= this.#beganAtMs + SLICE_MS;
  }

  /** Has it work now, or when there is time again. Who waits already waits once. */
  take(worker: Worker): void {
    if (!this.#isOpen) this.#open();
    if (this.#waiting.size > 0 || this.isOver) this.#waiting.add(worker);
    else worker.turn();
  }

  #open(): void {
    this.#isOpen = true;
    this.#beganAtMs = this.#nowMs();
    this.#looks = 0;
    setImmediate(() => this.#close());
  }

  #close(): void {
    if (this.#waiting.size === 0) this.#isOpen = false;
    else if (this.#restPerMs === 0) this.#next();
    else setTimeout(() => this.#next(), (this.#nowMs() - this.#beganAtMs) * this.#restPerMs);
  }

  #next(): void {
    this.#open();
    for (const worker of this.#waiting) {
      if (this.isOver) return;
      this.#waiting.delete(worker);
      worker.turn();
    }
  }
}
