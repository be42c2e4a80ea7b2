/** The tails of this process: one for each stream that anyone follows. */

import type { LogPoint } from '#core/ports/event-log.ts';
import { RecentBudget } from '#functions/watch/tail/recent-events.ts';
import { type Follower, Tail, type TailDeps } from '#functions/watch/tail/tail.ts';

export class Tails {
  readonly #deps: TailDeps;
  readonly #tails = new Map<bigint, Tail>();

  constructor({ log, onError }: Omit<TailDeps, 'recent'>) {
    this.#deps = { log, onError, recent: new RecentBudget() };
  }

  /** Delivers every event after the point to the follower, from now on. */
  async follow(follower: Follower, stream: bigint, after: LogPoint): Promise<void> {
    let tail = this.#tails.get(stream);
    if (!tail) this.#tails.set(stream, (tail = new Tail(this.#deps, stream, after)));
    try {
      await tail.follow(follower, after);
    } finally {
      this.#dropUnfollowed(tail);
    }
  }

  /** The stream's tail, which begins at the head when there is none. It tells the follower of what comes. */
  pull(follower: Follower, stream: bigint, head: LogPoint): Tail {
    let tail = this.#tails.get(stream);
    if (!tail) this.#tails.set(stream, (tail = new Tail(this.#deps, stream, head)));
    tail.pull(follower);
    return tail;
  }

  leave(follower: Follower, stream: bigint): void {
    const tail = this.#tails.get(stream);
    if (!tail) return;
    tail.leave(follower);
    this.#dropUnfollowed(tail);
  }

  /** Lets go of what is too old, where nothing new has come. */
  trim(nowMs: number): void {
    for (const tail of this.#tails.values()) tail.trim(nowMs);
  }

  #dropUnfollowed(tail: Tail): void {
    if (tail.isFollowed || this.#tails.get(tail.stream) !== tail) return;
    this.#tails.delete(tail.stream);
    tail.stop();
  }
}
