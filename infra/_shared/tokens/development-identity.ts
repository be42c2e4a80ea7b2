/**
 * Keys and tokens for development. Whoever can read DATA_DIR is admin; there is no other default secret, and a key that
 * was made here is never accepted by a deployment that is not given this DATA_DIR.
 *
 * @see https://www.rfc-editor.org/rfc/rfc7519 JSON Web Token
 * @see https://www.rfc-editor.org/rfc/rfc8037 Ed25519 in JWK and JWS
 */

import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type JSONWebKeySet, SignJWT, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from 'jose';
import * as v from 'valibot';
import type { Audience, Role, TenantSet } from '#core/identity.ts';
import { createPrivateFile, openPrivateDirectory } from '#infra/_shared/data-dir/data-directory.ts';
import { audienceClaim } from '#http/authenticate.ts';
import { StartError, hasCode } from '#infra/_shared/life/start-error.ts';

/** `iss` of every token that a development key signed. */
export const DEVELOPMENT_ISSUER = 'plumbline/development';

/** The folder of DATA_DIR with ready-made tokens. */
export const TOKENS_FOLDER = 'tokens';

const ALGORITHM = 'EdDSA';
const KEY_FILE = 'development.jwk.json';

const PrivateJwkSchema = v.object({
  kty: v.literal('OKP'),
  crv: v.literal('Ed25519'),
  x: v.string(),
  d: v.string(),
  kid: v.string(),
  alg: v.literal(ALGORITHM),
  use: v.literal('sig'),
});
type PrivateJwk = v.InferOutput<typeof PrivateJwkSchema>;

export interface TokenParams {
  readonly subject: string;
  readonly audience: Audience;
  readonly roles: readonly Role[];
  readonly tenants: TenantSet;
  readonly ttlSeconds: number;
}

export interface DevelopmentIdentity {
  readonly issuer: string;
  /** The public key, to verify with. */
  readonly jwks: JSONWebKeySet;
  /** A signed JWT. It begins to be valid now. */
  issueToken(params: TokenParams): Promise<string>;
}

/**
 * The key of DATA_DIR, made when there is none. Of several processes that make it at once, all get the same.
 * @throws {StartError} when the file does not hold such a key.
 */
export async function loadDevelopmentIdentity(dataDir: string): Promise<DevelopmentIdentity> {
  const path = join(await openPrivateDirectory(dataDir, 'keys'), KEY_FILE);
  const privateJwk = parseKey(path, (await readKey(path)) ?? (await makeKey(path)));
  const { d: _, ...publicJwk } = privateJwk;
  const key = await importJWK(privateJwk, ALGORITHM);

  async function issueToken(params: TokenParams): Promise<string> {
    const nowSeconds = Math.floor(Date.now() / 1_000);
    return new SignJWT({ roles: params.roles, tenants: params.tenants })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT', kid: privateJwk.kid })
      .setIssuer(DEVELOPMENT_ISSUER)
      .setAudience(audienceClaim(params.audience))
      .setSubject(params.subject)
      .setJti(randomUUID())
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + params.ttlSeconds)
      .sign(key);
  }

  return { issuer: DEVELOPMENT_ISSUER, jwks: { keys: [publicJwk] }, issueToken };
}

/** Removes what an earlier start left in DATA_DIR: an installation with an issuer has no other key, and no tokens lie about. */
export async function removeDevelopmentIdentity(dataDir: string): Promise<void> {
  await rm(join(dataDir, 'keys', KEY_FILE), { force: true });
  await rm(join(dataDir, TOKENS_FOLDER), { force: true, recursive: true });
}

async function readKey(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function makeKey(path: string): Promise<string> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { crv: 'Ed25519', extractable: true });
  const jwk = await exportJWK(privateKey);
  const text = JSON.stringify({ ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' });
  return (await createPrivateFile(path, `${text}\n`)) ? text : readFile(path, 'utf8');
}

function parseKey(path: string, text: string): PrivateJwk {
  try {
    return v.parse(PrivateJwkSchema, JSON.parse(text));
  } catch (error) {
    throw new StartError(`${path} is not an Ed25519 private key in JWK form; remove it to have a new one made`, {
      cause: error,
    });
  }
}
