/** The tails of this process: one for each stream that anyone follows, woken by what the log says. */

import type { EventLog, LogPoint } from '#core/ports/event-log.ts';
import { type Follower, Tail } from '#functions/watch/tail.ts';

export class Tails {
  readonly #log: EventLog;
  readonly #tails = new Map<bigint, Tail>();
  #checking = false;

  constructor(log: EventLog, signal: AbortSignal) {
    this.#log = log;
    log.onAppend((stream) => {
      if (stream === undefined) void this.#wakeAll();
      else this.wake(stream);
    }, signal);
  }

  /** Delivers every event after the point to the follower, from now on. */
  async follow(follower: Follower, stream: bigint, after: LogPoint): Promise<void> {
    let tail = this.#tails.get(stream);
    if (!tail) this.#tails.set(stream, (tail = new Tail(this.#log, stream, after)));
    await tail.follow(follower, after);
  }

  leave(follower: Follower, stream: bigint): void {
    const tail = this.#tails.get(stream);
    tail?.leave(follower);
    if (tail && !tail.isFollowed) this.#tails.delete(stream);
  }

  wake(stream: bigint): void {
    this.#tails.get(stream)?.wake();
  }

  /** Something may have been missed: one query tells which streams are behind. */
  async #wakeAll(): Promise<void> {
    if (this.#checking || this.#tails.size === 0) return;
    this.#checking = true;
    try {
      const ranges = await this.#log.ranges([...this.#tails.keys()]);
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
