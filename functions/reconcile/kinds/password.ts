/** Passwords of roles, for programs. */

const BYTES = 24;

/** 32 characters that need no quoting in URLs, of 192 random bits. */
export function newPassword(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}
