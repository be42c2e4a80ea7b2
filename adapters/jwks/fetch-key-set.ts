/** One read of an issuer's key set: bounded in time and size, and nothing of it but public keys that tokens are checked with. */

import { importJWK, type JWK } from 'jose';

export interface FetchKeySetOptions {
  /** From the connection to the last byte. */
  readonly timeoutMs: number;
  /** Fires when nobody needs the answer any more. */
  readonly signal: AbortSignal;
}

const MAX_BYTES = 262_144;
/** Two of each algorithm are many, while one takes over from the other. */
const MAX_KEYS = 100;
/** NIST SP 800-131A; jose refuses shorter ones too, at each token. */
const MIN_RSA_BITS = 2_048;

/**
 * The keys that can check EdDSA (Ed25519), ES256 and RS256. Others are left out: those for encryption, those of other
 * algorithms, secrets, and private keys, which no issuer should show. There may be none.
 * @throws for anything but a key set of at most 256 KiB and 100 keys, answered 200. Redirects are not followed.
 */
export async function fetchKeySet(url: string, { timeoutMs, signal }: FetchKeySetOptions): Promise<readonly JWK[]> {
  const response = await fetch(url, {
    headers: { Accept: 'application/jwk-set+json, application/json' },
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the key set is answered ${response.status}`);
  }
  const keys = keysOf(await readBounded(response));
  const usable = await Promise.all(keys.map(isUsable));
  return keys.filter((_, index) => usable[index]);
}

async function readBounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  const body: ReadableStream<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop cancels the rest.
    if (bytes > MAX_BYTES) throw new Error(`the key set has more than ${MAX_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function keysOf(text: string): readonly JWK[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('the key set is not JSON');
  }
  if (!isObject(parsed) || !Array.isArray(parsed['keys']) || !parsed['keys'].every(isObject)) {
    throw new Error('what is answered is no JSON Web Key Set');
  }
  if (parsed['keys'].length > MAX_KEYS) throw new Error(`the key set has more than ${MAX_KEYS} keys`);
  return parsed['keys'];
}

async function isUsable(key: JWK): Promise<boolean> {
  const algorithm = algorithmOf(key);
  if (algorithm === undefined || key.d !== undefined) return false;
  if (key.use !== undefined && key.use !== 'sig') return false;
  if (key.alg !== undefined && key.alg !== algorithm) return false;
  try {
    await importJWK(key, algorithm);
    return true;
  } catch {
    return false;
  }
}

function algorithmOf({ kty, crv, n }: JWK): string | undefined {
  if (kty === 'OKP' && crv === 'Ed25519') return 'EdDSA';
  if (kty === 'EC' && crv === 'P-256') return 'ES256';
  return kty === 'RSA' && typeof n === 'string' && n.length * 6 >= MIN_RSA_BITS ? 'RS256' : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
