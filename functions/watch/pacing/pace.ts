/**
 * The pace of reading what is long past. Beside watchers that are sent new events it is slow: few read at once, a little
 * at a time, and each rests after every part in proportion to what it took, so that most of the event loop's and of the
 * database's time is left to the others. With nobody to delay, it goes as fast as it can, and so it does while it does not
 * come closer.
 */

import { yieldToOthers } from '#loop/yield-to-others.ts';
import { Slots } from '#functions/watch/pacing/slots.ts';

export interface PaceOptions {
  /** Milliseconds of a clock that only runs forward. */
  readonly nowMs?: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

/** New events of so long ago say that more may come at any moment. */
const LIVE_FOR_MS = 5_000;
/** So much who is behind reads at once: most have missed no more than that. */
const FREE_EVENTS = 1_000;
/** How many read at once; together they have three quarters of the time. */
const READERS = 3;
/** Read, for each new event: who is slower than that would be behind for long, or for ever. */
const GAIN = 2;
/** For each millisecond of reading. */
const REST_PER_MS = 3;
/** A read takes long too when the database is away. */
const MAX_REST_MS = 250;

export class Pace {
  readonly #nowMs: () => number;
  readonly #sleep: (ms: number) => Promise<void>;
  readonly #slots = new Slots(READERS);
  #liveAtMs = -Infinity;

  constructor({ nowMs = () => performance.now(), sleep = sleepFor }: PaceOptions = {}) {
    this.#nowMs = nowMs;
    this.#sleep = sleep;
  }

  /** Someone was sent new events. */
  live(): void {
    this.#liveAtMs = this.#nowMs();
  }

  /** The way of one that is behind. @param grown how many events there are more by now than when it began. */
  stint(grown: () => number): Stint {
    let read = 0;
    const isSlow = (): boolean =>
      read >= Math.max(FREE_EVENTS, GAIN * grown()) && this.#nowMs() - this.#liveAtMs < LIVE_FOR_MS;
    return {
      get isSlow() {
        return isSlow();
      },
      run: async (count, call) => {
        const result = await (isSlow() ? this.#slots.run(call) : call());
        read += count;
        return result;
      },
      nowMs: this.#nowMs,
      rest: async (sinceMs) => {
        if (isSlow()) await this.#sleep(Math.min(MAX_REST_MS, (this.#nowMs() - sinceMs) * REST_PER_MS));
        else await yieldToOthers();
      },
    };
  }
}

export interface Stint {
  /** Whether there is someone to delay, by one that has much to read and comes closer. */
  readonly isSlow: boolean;
  /** Reads so many events, at once or when it is its turn. */
  run<T>(count: number, call: () => Promise<T>): Promise<T>;
  /** By which `rest` measures. */
  nowMs(): number;
  /** Lets others have their events. @param sinceMs when this part was begun. */
  rest(sinceMs: number): Promise<void>;
}

async function sleepFor(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
