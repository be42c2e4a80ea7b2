/** What is told when tokens cannot be checked. */

import { StatusError } from '#core/status-error.ts';

/** A key set that no token can be checked with. */
export const NO_KEYS: Error = new Error('the key set has no key for EdDSA (Ed25519), ES256 or RS256');

/** @param minIntervalMs until the keys may be read again. @param failure of the last read; undefined: there was none. */
export function keysUnavailable(minIntervalMs: number, failure: unknown): StatusError {
  return new StatusError('ServiceUnavailable', 'the keys that tokens are checked with cannot be had; try again', {
    details: { retryAfterSeconds: secondsOf(minIntervalMs) },
    ...(failure !== undefined && { cause: failure }),
  });
}

/** For `Retry-After`. */
export function secondsOf(intervalMs: number): number {
  return Math.max(1, Math.ceil(intervalMs / 1_000));
}
