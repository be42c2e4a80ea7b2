/**
 * Tokens sealed with AES-256-GCM-SIV (RFC 8452) by `@noble/ciphers`, which runs wherever JavaScript runs. Random nonces
 * need no memory of earlier ones, and should one ever repeat, this mode gives away no more than that two equal
 * plaintexts are equal.
 *
 * A token is base64url without padding of: the key's id (1 byte), the nonce (12), the ciphertext and its tag (16).
 * 12 bytes of plaintext cost 12 µs to seal or to open, 600 bytes 26 µs; all but 2 µs of it is the cipher.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8452
 */

import { Buffer } from 'node:buffer';

import { gcmsiv } from '@noble/ciphers/aes.js';

import type { SecretBox } from '#core/ports/secret-box.ts';

/** One key of the ring. */
export interface SecretBoxKey {
  /** 0 to 255. Ids rise with time and are never used twice. */
  readonly id: number;
  /** 32 random bytes. */
  readonly key: Uint8Array;
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + NONCE_BYTES;

/**
 * The box of a ring of keys, in the order of their ids: the last one seals, all open. A token whose key id is below the
 * newest and not in the ring is `retired`; one above it never existed, so it is `malformed`.
 * @param randomBytes for nonces; cryptographically strong unless a test says otherwise.
 * @throws {RangeError} when the ring is empty, out of order, or has a key that is no key.
 */
export function secretBox(
  keys: readonly SecretBoxKey[],
  randomBytes: (length: number) => Uint8Array = pooledRandomBytes(),
): SecretBox {
  checkRing(keys);
  // Copies: a caller that wipes its keys does not break the box.
  const ring = new Map(keys.map(({ id, key }) => [id, Uint8Array.from(key)]));
  const [newestId, newestKey] = [...ring].at(-1)!;
  return { seal, open };

  function seal(plaintext: Uint8Array, associatedData: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const ciphertext = gcmsiv(newestKey, nonce, Buffer.from(associatedData)).encrypt(plaintext);
    const token = Buffer.allocUnsafe(HEADER_BYTES + ciphertext.length);
    token[0] = newestId;
    token.set(nonce, 1);
    token.set(ciphertext, HEADER_BYTES);
    return token.toString('base64url');
  }

  function open(token: string, associatedData: string): Uint8Array | 'malformed' | 'retired' {
    const bytes = decodeBase64Url(token);
    if (!bytes || bytes.length < HEADER_BYTES + TAG_BYTES) return 'malformed';
    const id = bytes[0]!;
    const key = ring.get(id);
    if (!key) return id < newestId ? 'retired' : 'malformed';
    const nonce = bytes.subarray(1, HEADER_BYTES);
    try {
      return gcmsiv(key, nonce, Buffer.from(associatedData)).decrypt(bytes.subarray(HEADER_BYTES));
    } catch {
      return 'malformed';
    }
  }
}

function checkRing(keys: readonly SecretBoxKey[]): void {
  if (keys.length === 0) throw new RangeError('a ring of keys needs at least one key');
  let previous = -1;
  for (const { id, key } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > 255) throw new RangeError(`the id of a key is 0 to 255; got ${id}`);
    if (id <= previous) throw new RangeError(`keys are ordered by id, each id once; ${id} comes after ${previous}`);
    if (key.length !== KEY_BYTES) throw new RangeError(`key ${id} has ${key.length} bytes; it must have ${KEY_BYTES}`);
    previous = id;
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
