/** Waits that can be cut short, and that grow. */

/** A ring while nobody waits cuts the next wait short. */
export class Alarm {
  #isRung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#isRung = true;
    this.#wake?.();
  }

  /** Resolves after this time, or at a ring. */
  async wait(ms: number): Promise<void> {
    if (!this.#isRung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#isRung = false;
    this.#wake = undefined;
  }
}

/** Twice as long each time, up to a bound, until it begins anew. */
export class Growth {
  readonly #first: number;
  readonly #longest: number;
  #next: number;

  constructor(first: number, longest: number) {
    this.#first = first;
    this.#longest = longest;
    this.#next = first;
  }

  get current(): number {
    return this.#next;
  }

  /** What is current, and grows by it. */
  next(): number {
    const current = this.#next;
    this.#next = Math.min(current * 2, this.#longest);
    return current;
  }

  reset(): void {
    this.#next = this.#first;
  }
}
