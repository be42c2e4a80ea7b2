/** Digests of what must not be logged: equal for equal texts, and of no use to whoever reads them. */

const DIGEST_BYTES = 6;

/** The first 12 hexadecimal digits of the text's SHA-256, as `printf %s TEXT | sha256sum | head -c 12` shows them. */
export async function digestOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(digest.subarray(0, DIGEST_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
