/** A watcher's way to its client: how much waits there, and whether the client takes any of it. */

import type { SseBytes, SseSink } from '#core/ports/sse.ts';

/** Beyond this much that the network did not take, nothing more is written. */
const HIGH_WATER_BYTES = 64 * 1024;
/** A client that is being refused gets this long to take the last frame. */
const LINGER_MS = 5_000;
/** The least that counts as taking. A large event is one write, of which nothing shows until all of it is taken. */
const SLOWEST_BYTES_PER_MS = 64;

/** A class, for its memory: one of thousands. */
export class Outlet {
  readonly #sink: SseSink;
  #isClosed = false;
  #drained: (() => void) | undefined;
  #writtenBytes = 0;
  /** How much of it the network had taken when it was last looked at, and when that had grown. */
  #takenBytes = 0;
  #takenAtMs: number = performance.now();

  constructor(sink: SseSink) {
    this.#sink = sink;
  }

  get isFull(): boolean {
    return this.#sink.bufferedBytes > HIGH_WATER_BYTES;
  }

  /**
   * How long the client has taken nothing of what is waiting for it, beyond the time that a slow one takes for as much;
   * 0 when nothing is waiting. Compares with the call before:
   * whoever is slow, and goes on, is not blocked, however long it never has everything.
   */
  blockedMs(nowMs: number): number {
    const { bufferedBytes } = this.#sink;
    const takenBytes = this.#writtenBytes - bufferedBytes;
    if (bufferedBytes === 0 || takenBytes > this.#takenBytes) {
      this.#takenBytes = takenBytes;
      this.#takenAtMs = nowMs;
    }
    return Math.max(0, nowMs - this.#takenAtMs - bufferedBytes / SLOWEST_BYTES_PER_MS);
  }

  write(bytes: SseBytes): void {
    if (this.#isClosed) return;
    this.#sink.write(bytes);
    this.#writtenBytes += bytes.plain.byteLength;
  }

  /** Resolves when the network took what was written, or the stream closed. */
  async flushed(): Promise<void> {
    while (this.isFull && !this.#isClosed) {
      await new Promise<void>((resolve) => (this.#drained = resolve));
    }
  }

  onDrain(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** Ends the stream behind what was written. */
  end(): void {
    this.#sink.end();
    if (this.#sink.bufferedBytes > 0) setTimeout(() => this.#sink.destroy(), LINGER_MS);
  }

  /** The connection is gone, or about to be. */
  closed(): void {
    this.#isClosed = true;
    this.onDrain();
  }
}
