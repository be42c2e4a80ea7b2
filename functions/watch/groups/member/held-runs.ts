/**
 * Events that were read and that not all lanes had room for, over all members of a process: some 64 MiB at most. What is
 * over that is read again when there is room.
 */

/** One member's reading of a stream, which holds one batch at most. */
interface Holder {
  forget(): void;
}

/** Of 256 KiB at most each. */
const MAX_RUNS = 256;

export class HeldRuns {
  /** The one that was read last is the last. */
  readonly #holders = new Set<Holder>();

  /** It holds what it has just read; the one that has held for the longest time may have to forget. */
  hold(holder: Holder): void {
    this.#holders.delete(holder);
    this.#holders.add(holder);
    const [longest] = this.#holders;
    if (!longest || this.#holders.size <= MAX_RUNS) return;
    longest.forget();
    this.#holders.delete(longest);
  }

  /** It holds nothing any more. */
  drop(holder: Holder): void {
    this.#holders.delete(holder);
  }
}
