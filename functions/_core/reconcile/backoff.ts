/** How long a pass that failed waits: exponential, with full jitter, so that those that failed together come apart. */

export const FIRST_BACKOFF_MS = 1_000;
export const LONGEST_BACKOFF_MS = 300_000;

/**
 * @param attempts that have failed in a row, from 1 on.
 * @param random from 0 to 1.
 * @see https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 */
export function backoffMs(attempts: number, random: number): number {
  return random * Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempts - 1));
}
