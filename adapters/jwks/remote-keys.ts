/**
 * The keys of a token issuer, by its JSON Web Key Set at a URL. They are held in memory and read again beside the
 * requests, so that rotation needs no restart, and an issuer that is away stops nobody whose key is known.
 *
 * @see https://www.rfc-editor.org/rfc/rfc7517#section-5
 */

import { createLocalJWKSet, errors, type JWK, type JWTVerifyGetKey } from 'jose';
import { fetchKeySet } from '#adapters/jwks/fetch-key-set.ts';
import { keysUnavailable, NO_KEYS, secondsOf } from '#adapters/jwks/no-keys.ts';
import { StatusError } from '#core/status-error.ts';

export interface RemoteKeysOptions {
  /** https, or http on the loopback interface. */
  readonly url: string;
  /** Ends the reading. */
  readonly signal: AbortSignal;
  /** Other keys than before are in use: their ids. */
  readonly onChange: (keyIds: readonly (string | undefined)[]) => void;
  /** The keys cannot be read; those from before stay in use. Told once until they can be read again. */
  readonly onError: (error: unknown) => void;
  readonly onRecovery: () => void;
  /** How long a key that was taken out of the set may still be in use. @default 300,000 */
  readonly refreshMs?: number;
  /** Between the beginnings of two reads, whoever asks and however often. @default 5,000 */
  readonly minIntervalMs?: number;
  /** @default 3,000 */
  readonly timeoutMs?: number;
}

export interface RemoteKeys {
  /**
   * The key of a token. A key id that is not known is looked for by one more read, which all who wait for one share.
   * @throws {StatusError} ServiceUnavailable when it cannot be told whether there is such a key, TooManyRequests when too
   * many wait for that; jose's
   * `JWKSNoMatchingKey` when there is none, and `JWKSMultipleMatchingKeys` for a token without a key id that several fit.
   */
  readonly find: JWTVerifyGetKey;
  /** Whether tokens of the key with this id are taken, as of the last read. */
  trusts(keyId: string): boolean;
  /** How long ago the keys were read; undefined when they never were. */
  ageMs(): number | undefined;
  /** Why no token can be checked; undefined while there are keys, be they fresh or not. */
  problem(): string | undefined;
}

type Token = Parameters<JWTVerifyGetKey>;
type Key = Awaited<ReturnType<JWTVerifyGetKey>>;

/** Who sends made-up key ids must not fill the memory with requests that wait. */
const MAX_WAITING = 64;

/** Begins to read at once, and does not wait for it: an issuer that is away does not keep a server from starting. */
export function remoteKeys(options: RemoteKeysOptions): RemoteKeys {
  const { url, signal, onChange, onError, onRecovery } = options;
  const { refreshMs = 300_000, minIntervalMs = 5_000, timeoutMs = 3_000 } = options;
  let known: JWTVerifyGetKey | undefined;
  let knownIds: ReadonlySet<string | undefined> = new Set();
  let knownText = '';
  let failure: unknown;
  let beganAtMs = Number.NEGATIVE_INFINITY;
  let readAtMs: number | undefined;
  let reading: Promise<void> | undefined;
  let turn: Promise<void> | undefined;
  let waiting = 0;

  void keepReading();
  return {
    find,
    trusts: (keyId) => known !== undefined && knownIds.has(keyId),
    ageMs: () => (readAtMs === undefined ? undefined : performance.now() - readAtMs),
    problem() {
      if (known) return undefined;
      return failure === undefined ? 'the keys of tokens have not been read yet' : describe(failure);
    },
  };

  async function find(...token: Token): Promise<Key> {
    const found = await look(token);
    if (found) return found;
    // It began before the token came: what it does not find may be newer.
    await reading;
    return (await look(token)) ?? lookAgain(token);
  }

  /** Undefined: it is not among those that are known. */
  async function look(token: Token): Promise<Key | undefined> {
    try {
      return await known?.(...token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return undefined;
      throw error;
    }
  }

  async function lookAgain(token: Token): Promise<Key> {
    // Without any key, everybody would wait: the reading goes on by itself.
    if (!known) throw keysUnavailable(minIntervalMs, failure);
    if (waiting >= MAX_WAITING) throw tooMany();
    waiting += 1;
    try {
      await readInTurn();
    } finally {
      waiting -= 1;
    }
    if (!known || failure !== undefined) throw keysUnavailable(minIntervalMs, failure);
    return known(...token);
  }

  async function keepReading(): Promise<void> {
    while (!signal.aborted) {
      await readInTurn();
      await pause(failure === undefined ? refreshMs : minIntervalMs);
    }
  }

  function readInTurn(): Promise<void> {
    turn ??= pause(beganAtMs + minIntervalMs - performance.now())
      .then(() => (reading = read()))
      .finally(() => {
        turn = undefined;
        reading = undefined;
      });
    return turn;
  }

  async function read(): Promise<void> {
    beganAtMs = performance.now();
    try {
      take(await fetchKeySet(url, { timeoutMs, signal }));
      readAtMs = beganAtMs;
      if (failure !== undefined) onRecovery();
      failure = undefined;
    } catch (error) {
      if (failure === undefined && !signal.aborted) onError(error);
      failure = error;
    }
  }

  function take(keys: readonly JWK[]): void {
    if (keys.length === 0) {
      // It takes back those that there were.
      known = undefined;
      throw NO_KEYS;
    }
    const text = JSON.stringify(keys);
    // The same ones are not imported anew.
    if (known && text === knownText) return;
    knownText = text;
    known = createLocalJWKSet({ keys: [...keys] });
    knownIds = new Set(keys.map(({ kid }) => kid));
    onChange([...knownIds]);
  }

  function pause(ms: number): Promise<void> {
    if (signal.aborted || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(finish, ms);
      signal.addEventListener('abort', finish, { once: true });
      function finish(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        resolve();
      }
    });
  }

  /** Not a fault of ours to be warned of: whoever sends them could fill the log. */
  function tooMany(): StatusError {
    const message = 'too many tokens name a key that is not known yet; try again';
    return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: secondsOf(minIntervalMs) } });
  }
}

/** fetch says "fetch failed", and the reason in its cause. */
function describe(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  const reason = cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : '') : '';
  return `the keys of tokens cannot be read: ${message}${reason === '' ? '' : `: ${reason}`}`;
}
