/** PORT. Authenticated encryption of small tokens under a ring of keys. */

export interface SecretBox {
  /** Seals under the newest key. The token is URL-safe text; the same input gives another token each time. */
  seal(plaintext: Uint8Array, associatedData: string): string;

  /** The plaintext; `malformed` for anything that this ring did not seal with this associated data; `retired` for a key that left the ring. */
  open(token: string, associatedData: string): Uint8Array | 'malformed' | 'retired';
}
