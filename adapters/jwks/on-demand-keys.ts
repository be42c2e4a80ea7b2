/**
 * The keys of a token issuer, where nothing runs between requests: whoever needs them reads them, and they are kept as
 * plain data. Who waits for a read shares it with nobody, as promises of one request mean nothing to another on workerd.
 * Where a process stays, see `remote-keys.ts`.
 */

import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { fetchKeySet } from '#adapters/jwks/fetch-key-set.ts';
import { keysUnavailable, NO_KEYS } from '#adapters/jwks/no-keys.ts';

export interface OnDemandKeysOptions {
  /** https, or http on the loopback interface. */
  readonly url: string;
  /** The keys cannot be read; those from before stay in use. */
  readonly onError: (error: unknown) => void;
  /** How long a key that was taken out of the set may still be in use. @default 300,000 */
  readonly refreshMs?: number;
  /** A set that is younger is not read again for a key that it lacks; nor after a failure. @default 5,000 */
  readonly minIntervalMs?: number;
  /** @default 3,000 */
  readonly timeoutMs?: number;
}

type Token = Parameters<JWTVerifyGetKey>;

/**
 * Finds the key of a token; one that is not known is looked for by one more read, at most once per interval.
 * @returns a function that throws {StatusError} ServiceUnavailable when no keys can be had, and jose's
 * `JWKSNoMatchingKey` and `JWKSMultipleMatchingKeys`.
 */
export function onDemandKeys({
  url,
  onError,
  refreshMs = 300_000,
  minIntervalMs = 5_000,
  timeoutMs = 3_000,
}: OnDemandKeysOptions): JWTVerifyGetKey {
  let known: JWTVerifyGetKey | undefined;
  let beganAtMs = Number.NEGATIVE_INFINITY;
  let failure: unknown;

  return async function find(...token: Token) {
    if (isDue()) await read();
    try {
      return await keys()(...token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || age() < minIntervalMs) throw error;
    }
    await read();
    return keys()(...token);
  };

  function age(): number {
    return performance.now() - beganAtMs;
  }

  /** The first requests of an isolate read side by side; those after a failure wait for the next interval. */
  function isDue(): boolean {
    if (failure !== undefined) return age() >= minIntervalMs;
    return !known || age() >= refreshMs;
  }

  async function read(): Promise<void> {
    beganAtMs = performance.now();
    try {
      const found = await fetchKeySet(url, { timeoutMs, signal: new AbortController().signal });
      known = found.length > 0 ? createLocalJWKSet({ keys: [...found] }) : undefined;
      failure = known ? undefined : NO_KEYS;
    } catch (error) {
      failure = error;
    }
    if (failure !== undefined) onError(failure);
  }

  function keys(): JWTVerifyGetKey {
    if (known) return known;
    throw keysUnavailable(minIntervalMs, failure);
  }
}
