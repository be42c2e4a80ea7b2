/** PORT. Authenticated encryption of small tokens under a ring of keys. */

export interface SecretBox {
  /** Seals under the newest key. The token is URL-safe text; the same input gives another token each time. */
  seal(plaintext: Uint8Array, associatedData: string): string;

  /** The plaintext; `malformed` for anything that this ring did not seal with this associated data; `retired` for a key that left the ring. */
  open(token: string, associatedData: string): Uint8Array | 'malformed' | 'retired';

  /**
   * Begins a series: many tokens of one plaintext, each with a number from 0 to 4,294,967,295, at a fraction of what
   * `seal` costs. Each is opened by itself, by `openSeries`; the same number gives the same token.
   */
  sealSeries(plaintext: Uint8Array, associatedData: string): (number: number) => string;

  /** What a token of a series was sealed with; else as `open`. */
  openSeries(token: string, associatedData: string): Numbered | 'malformed' | 'retired';
}

export interface Numbered {
  readonly plaintext: Uint8Array;
  readonly number: number;
}
