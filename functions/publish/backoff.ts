/** Waiting longer after each failure in a row, for many things apart. */

const FIRST_MS = 100;
const LONGEST_MS = 2_000;

export interface Backoff<Key> {
  /** It failed, and its time has not come. */
  isWaiting(key: Key): boolean;
  failed(key: Key): void;
  succeeded(key: Key): void;
}

/** The first failure costs 100 ms, each further one twice as much, up to 2 s. */
export function createBackoff<Key>(): Backoff<Key> {
  const failures = new Map<Key, { readonly delayMs: number; readonly untilMs: number }>();
  return {
    isWaiting: (key) => (failures.get(key)?.untilMs ?? 0) > performance.now(),
    succeeded: (key) => void failures.delete(key),
    failed(key) {
      const delayMs = Math.min((failures.get(key)?.delayMs ?? FIRST_MS / 2) * 2, LONGEST_MS);
      failures.set(key, { delayMs, untilMs: performance.now() + delayMs });
    },
  };
}
