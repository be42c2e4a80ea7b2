/** The tails of this process: one for each stream that anyone follows, woken by what the log says. */

import type { LogPoint } from '#core/ports/event-log.ts';
import { type Follower, Tail, type TailDeps } from '#functions/watch/tail.ts';

export class Tails {
  readonly #deps: TailDeps;
  readonly #tails = new Map<bigint, Tail>();
  #checking = false;

  constructor(deps: TailDeps, signal: AbortSignal) {
    this.#deps = deps;
    deps.log.onAppend((stream) => {
      if (stream === undefined) void this.#wakeAll();
      else this.wake(stream);
    }, signal);
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

  wake(stream: bigint): void {
    this.#tails.get(stream)?.wake();
  }

  #dropUnfollowed(tail: Tail): void {
    if (!tail.isFollowed && this.#tails.get(tail.stream) === tail) this.#tails.delete(tail.stream);
  }

  /** Something may have been missed: one query tells which streams are behind. */
  async #wakeAll(): Promise<void> {
    if (this.#checking || this.#tails.size === 0) return;
    this.#checking = true;
    try {
      const ranges = await this.#deps.log.ranges([...this.#tails.keys()]);
      for (const [stream, { head }] of ranges) {
        if (head.seq > (this.#tails.get(stream)?.last.seq ?? head.seq)) this.wake(stream);
      }
    } catch {
      // The log is away. Its next call checks again.
    } finally {
      this.#checking = false;
    }
  }
}
