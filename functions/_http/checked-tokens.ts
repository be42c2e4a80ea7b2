/**
 * Tokens whose signature was checked a moment ago. To check one takes 0.1 ms, a fifth of what a write takes of a server's
 * time; callers send the same one again and again.
 */

import type { JWTVerifyGetKey } from 'jose';

import type { Caller } from '#core/identity.ts';

/** Tokens have 8 KiB at most. */
const MOST_TOKENS = 1_000;

export interface CheckedToken {
  readonly caller: Caller;
  /** What its key was found by, and the key. */
  readonly asked: Parameters<JWTVerifyGetKey>;
  readonly key: unknown;
}

export interface CheckedTokens {
  /**
   * The caller of a token that is still good: it has not expired, and its key still is the one that it was checked with.
   * Undefined: it has to be checked. Throws what finding the key throws.
   */
  callerOf(token: string): Promise<Caller | undefined>;
  add(token: string, checked: CheckedToken): void;
}

export function rememberTokens(keys: JWTVerifyGetKey): CheckedTokens {
  const known = new Map<string, CheckedToken>();
  return {
    async callerOf(token) {
      const found = known.get(token);
      if (!found) return undefined;
      if (Date.now() >= found.caller.expiresAtMs || (await keys(...found.asked)) !== found.key) {
        known.delete(token);
        return undefined;
      }
      // The last that was used goes last. Never away while its key is looked up: many come at once.
      known.delete(token);
      known.set(token, found);
      return found.caller;
    },

    add(token, checked) {
      known.set(token, checked);
      const [oldest] = known.keys();
      if (known.size > MOST_TOKENS && oldest !== undefined) known.delete(oldest);
    },
  };
}
