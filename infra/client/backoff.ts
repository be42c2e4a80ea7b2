/** How long to wait before the next try: it doubles, with full jitter, so that clients that were cut together come apart. */

export interface RetryOptions {
  /** The first wait is a random time up to this; each further one up to twice the one before. @default 800 */
  readonly minMs?: number;
  /** Also of what a stream's `retry:` asks for, which differs from client to client. @default 30,000 */
  readonly maxMs?: number;
  /** Behind a stream that lived for this long and delivered something, waits begin anew. @default 10,000 */
  readonly steadyMs?: number;
}

export interface Backoff {
  /** A connection delivered something, and ended after this long. */
  lived(openMs: number): void;
  /** Waits begin anew. */
  reset(): void;
  /** How long to wait now, in milliseconds: at least what the server asks for with an error, and in a stream. */
  next(retryAfterMs?: number, retryMs?: number): number;
}

/** @param failures before it, from 0 on. @param random from 0 to 1. @returns a random time up to a limit that doubles. */
export function jitteredMs(failures: number, minMs: number, maxMs: number, random: number = Math.random()): number {
  return random * Math.min(maxMs, minMs * 2 ** failures);
}

/** @param random from 0 to 1. */
export function createBackoff(options: RetryOptions = {}, random: () => number = Math.random): Backoff {
  const { minMs = 800, maxMs = 30_000, steadyMs = 10_000 } = options;
  let tries = 0;
  return {
    lived(openMs) {
      // A server that takes connections and drops them must not be called in a tight loop.
      if (openMs >= steadyMs) tries = 0;
    },
    reset() {
      tries = 0;
    },
    next(retryAfterMs = 0, retryMs = 0) {
      const waitMs = jitteredMs(tries, minMs, maxMs, random());
      tries += 1;
      return Math.max(retryAfterMs, Math.min(retryMs, maxMs)) + waitMs;
    },
  };
}
