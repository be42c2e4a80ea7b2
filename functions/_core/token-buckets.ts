/** Rates by token buckets: each key has one of its own, so that who spends his slows nobody else down. */

/** How many seconds' worth a bucket holds. */
export const BURST_SECONDS = 2;

/** One token was taken; or it is the time until there is one. */
export type Taking = { readonly isTaken: true } | { readonly isTaken: false; readonly waitMs: number };

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Buckets that begin full, and are forgotten when they were not used for longest: beyond `maxBuckets`, whose memory is
 * about 100 bytes each, somebody gets a full one too early.
 */
export class TokenBuckets {
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>();
  readonly #maxBuckets: number;

  constructor(maxBuckets: number) {
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** @param nowMs of a clock that only runs forward. A rate that changes holds from now on. */
  take(key: string, perSecond: number, nowMs: number): Taking {
    const capacity = perSecond * BURST_SECONDS;
    const bucket = this.#buckets.get(key) ?? { tokens: capacity, filledAtMs: nowMs };
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#maxBuckets) this.#forgetOldest();
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.filledAtMs) / 1000) * perSecond);
    bucket.filledAtMs = nowMs;
    if (bucket.tokens < 1) return { isTaken: false, waitMs: ((1 - bucket.tokens) / perSecond) * 1000 };
    bucket.tokens -= 1;
    return { isTaken: true };
  }

  #forgetOldest(): void {
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
