/** A token issuer of the test's own: real keys, at a real HTTP server that counts who asks, and answers badly when told to. */

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose';
import type { Audience } from '#core/identity.ts';
import { audienceClaim } from '#http/authenticate.ts';
import type { Grant } from '#test/http/target.ts';

export type Algorithm = 'EdDSA' | 'ES256' | 'RS256';

export interface TokenIssuer {
  /** The claim `iss` of its tokens. */
  readonly issuer: string;
  readonly port: number;
  readonly jwksUrl: string;
  /** How often it was asked for its keys. */
  readonly requests: number;
  /** What it publishes, to be changed by the test. */
  readonly published: JWK[];
  /** A key that it signs with from now on, and publishes. @returns its private half */
  rotate(keyId: string, algorithm?: Algorithm): Promise<CryptoKey>;
  /** Takes a key out of what it publishes. */
  withdraw(keyId: string): void;
  /** Any token, signed with its newest key unless another one is given. */
  sign(claims: JWTPayload, header?: object, key?: CryptoKey | Uint8Array): Promise<string>;
  /** A token that this grants. */
  issue(grant: Grant): Promise<string>;
  /** Answers so from now on; undefined: as it should. */
  misbehave(listener: RequestListener | undefined): void;
  stop(): Promise<void>;
}

export async function startTokenIssuer(issuer: string = 'https://issuer.example'): Promise<TokenIssuer> {
  const published: JWK[] = [];
  let newest: { readonly header: { alg: string; kid: string }; readonly key: CryptoKey } | undefined;
  let requests = 0;
  let bad: RequestListener | undefined;
  const server = createServer((request, response) => {
    requests += 1;
    if (bad) return bad(request, response);
    response.setHeader('Content-Type', 'application/jwk-set+json').end(JSON.stringify({ keys: published }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await rotate('first');

  return {
    issuer,
    port,
    jwksUrl: `http://127.0.0.1:${port}/keys`,
    published,
    get requests() {
      return requests;
    },
    rotate,
    withdraw(keyId) {
      published.splice(
        published.findIndex(({ kid }) => kid === keyId),
        1,
      );
    },
    sign,
    issue: ({ roles, tenants, subject = 'test', audience = 'public', ttlSeconds = 600 }) =>
      sign({
        ...claimsFor(audience),
        sub: subject,
        jti: crypto.randomUUID(),
        roles,
        tenants,
        exp: nowSeconds() + ttlSeconds,
      }),
    misbehave(listener) {
      bad = listener;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function rotate(keyId: string, algorithm: Algorithm = 'EdDSA'): Promise<CryptoKey> {
    const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
    published.push({ ...(await exportJWK(publicKey)), kid: keyId, alg: algorithm, use: 'sig' });
    newest = { header: { alg: algorithm, kid: keyId }, key: privateKey };
    return privateKey;
  }

  function sign(claims: JWTPayload, header: object = {}, key?: CryptoKey | Uint8Array): Promise<string> {
    if (!newest) throw new Error('there is no key');
    return new SignJWT(claims).setProtectedHeader({ ...newest.header, typ: 'JWT', ...header }).sign(key ?? newest.key);
  }

  function claimsFor(audience: Audience): JWTPayload {
    return { iss: issuer, aud: audienceClaim(audience), iat: nowSeconds() };
  }
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}
