/** The tails of this process: one for each stream that anyone follows. */

import type { LogPoint } from '#core/ports/event-log.ts';
import { type Follower, Tail, type TailDeps } from '#functions/watch/tail.ts';

export class Tails {
  readonly #deps: TailDeps;
  readonly #tails = new Map<bigint, Tail>();

  constructor(deps: TailDeps) {
    this.#deps = deps;
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

  leave(follower: Follower, stream: bigint): void {
    const tail = this.#tails.get(stream);
    if (!tail) return;
    tail.leave(follower);
    this.#dropUnfollowed(tail);
  }

  #dropUnfollowed(tail: Tail): void {
    if (tail.isFollowed || this.#tails.get(tail.stream) !== tail) return;
    this.#tails.delete(tail.stream);
    tail.stop();
  }
}
