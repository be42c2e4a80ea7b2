/**
 * Passwords as PostgreSQL stores them. A statement with the password itself would leave it in the server's log.
 *
 * @see RFC 5803, RFC 7677; https://www.postgresql.org/docs/current/catalog-pg-authid.html
 */

import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** PostgreSQL's own number. */
const ITERATIONS = 4096;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** @param password printable ASCII, which SASLprep leaves as it is. */
export async function scramVerifier(password: string): Promise<string> {
  return verifierOf(password, randomBytes(SALT_BYTES));
}

/**
 * Whether this is what PostgreSQL would store for the password. One of another number of iterations than ours is not: a
 * role may store what it likes, and a large number would take for ever to check.
 */
export async function isVerifierOf(stored: string, password: string): Promise<boolean> {
  const [, iterations, salt] = /^SCRAM-SHA-256\$(\d+):([^$]+)\$/.exec(stored) ?? [];
  if (salt === undefined || Number(iterations) !== ITERATIONS) return false;
  return stored === (await verifierOf(password, Buffer.from(salt, 'base64')));
}

async function verifierOf(password: string, salt: Buffer): Promise<string> {
  const salted = await promisify(pbkdf2)(password, salt, ITERATIONS, KEY_BYTES, 'sha256');
  const hmac = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  const serverKey = hmac('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
