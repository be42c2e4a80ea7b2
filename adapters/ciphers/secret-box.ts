/**
 * Tokens sealed with AES-256-GCM-SIV (RFC 8452) by `@noble/ciphers`, which runs wherever JavaScript runs. Random nonces
 * need no memory of earlier ones, and should one ever repeat, this mode gives away no more than that two equal
 * plaintexts are equal.
 *
 * A token is base64url without padding of: the last byte of the key's id, the nonce (12), the ciphertext and its tag (16).
 * 12 bytes of plaintext cost 12 µs to seal or to open, 600 bytes 26 µs; all but 2 µs of it is the cipher.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8452
 */

import { Buffer } from 'node:buffer';

import { gcmsiv } from '@noble/ciphers/aes.js';

import { seriesOf } from '#adapters/ciphers/series.ts';
import { type CursorKey, MAX_KEY_SPAN } from '#core/ports/cursor-keys.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';

export interface SecretBoxOptions {
  /** The key that seals. @default the newest */
  readonly sealingId?: number;
  /** For nonces. @default cryptographically strong */
  readonly randomBytes?: (length: number) => Uint8Array;
}

const KEY_BYTES = 32;
const MAX_ID = 32_767;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + NONCE_BYTES;

/**
 * The box of a ring of keys, in the order of their ids: one seals, all open. A token whose key is older than the newest
 * and not in the ring is `retired`; one of a key that is newer than all is `malformed`.
 * @throws {RangeError} when the ring is empty, out of order, or has a key that is no key.
 */
export function secretBox(keys: readonly CursorKey[], options: SecretBoxOptions = {}): SecretBox {
  checkRing(keys);
  // Copies: a caller that wipes its keys does not break the box.
  const ring = new Map(keys.map(({ id, key }) => [id, Uint8Array.from(key)]));
  const newestId = keys.at(-1)!.id;
  const { sealingId = newestId, randomBytes = pooledRandomBytes() } = options;
  const sealingKey = ring.get(sealingId);
  if (!sealingKey) throw new RangeError(`the key that seals, ${sealingId}, is not in the ring`);
  return { seal, open, ...seriesOf({ seal, open }) };

  function seal(plaintext: Uint8Array, associatedData: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const ciphertext = gcmsiv(sealingKey!, nonce, Buffer.from(associatedData)).encrypt(plaintext);
    const token = Buffer.allocUnsafe(HEADER_BYTES + ciphertext.length);
    token[0] = sealingId % 256;
    token.set(nonce, 1);
    token.set(ciphertext, HEADER_BYTES);
    return token.toString('base64url');
  }

  function open(token: string, associatedData: string): Uint8Array | 'malformed' | 'retired' {
    const bytes = decodeBase64Url(token);
    if (!bytes || bytes.length < HEADER_BYTES + TAG_BYTES) return 'malformed';
    const age = (newestId + 256 - bytes[0]!) % 256;
    const id = newestId - age;
    // Half of what the byte can say is of keys that are older, half of newer ones.
    if (id < 0 || age >= MAX_KEY_SPAN) return 'malformed';
    const key = ring.get(id);
    if (!key) return 'retired';
    const nonce = bytes.subarray(1, HEADER_BYTES);
    try {
      return gcmsiv(key, nonce, Buffer.from(associatedData)).decrypt(bytes.subarray(HEADER_BYTES));
    } catch {
      return 'malformed';
    }
  }
}

function checkRing(keys: readonly CursorKey[]): void {
  if (keys.length === 0) throw new RangeError('a ring of keys needs at least one key');
  let previous = -1;
  for (const { id, key } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > MAX_ID)
      throw new RangeError(`the id of a key is 0 to ${MAX_ID}; got ${id}`);
    if (id <= previous) throw new RangeError(`keys are ordered by id, each id once; ${id} comes after ${previous}`);
    if (key.length !== KEY_BYTES) throw new RangeError(`key ${id} has ${key.length} bytes; it must have ${KEY_BYTES}`);
    previous = id;
  }
  const oldest = keys[0]!.id;
  if (previous - oldest >= MAX_KEY_SPAN) {
    throw new RangeError(`keys ${oldest} to ${previous} are too far apart; a ring spans ${MAX_KEY_SPAN} ids`);
  }
}

/** The bytes, if this is the one text that encodes them: Node's decoder skips what it does not know. */
function decodeBase64Url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Strong random bytes, many nonces at a time: a call to the system costs 6 µs, a slice of its answer 0.2 µs. */
function pooledRandomBytes(): (length: number) => Uint8Array {
  const pool = new Uint8Array(128 * NONCE_BYTES);
  let used = pool.length;
  return (length) => {
    if (used + length > pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    used += length;
    return pool.slice(used - length, used);
  };
}
