import {
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JWTPayload,
} from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';

import { createAuthenticator } from '#http/authenticate.ts';
import type { Caller } from '#core/identity.ts';
import { StatusError } from '#core/status-error.ts';

const ISSUER = 'https://issuer.example';
const NOW = Math.floor(Date.now() / 1000);
const CLAIMS = {
  iss: ISSUER,
  aud: 'plumbline/public',
  sub: 'ann',
  roles: ['editor'],
  tenants: ['globex', 'acme', 'acme'],
  exp: NOW + 3600,
};

let trusted: CryptoKey;
let stranger: CryptoKey;
let identify: (authorization: string | undefined) => Promise<Caller>;

beforeAll(async () => {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  trusted = pair.privateKey;
  stranger = (await generateKeyPair('EdDSA', { crv: 'Ed25519' })).privateKey;
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k1', alg: 'EdDSA' };
  identify = createAuthenticator({ keys: createLocalJWKSet({ keys: [jwk] }), audience: 'public', issuer: ISSUER });
});

function sign(claims: JWTPayload, key: CryptoKey = trusted, header: object = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: 'k1', ...header }).sign(key);
}

async function refusal(authorization: string | undefined): Promise<StatusError> {
  const error: unknown = await identify(authorization).catch((thrown: unknown) => thrown);
  if (error instanceof StatusError) return error;
  throw new Error('accepted, or failed otherwise', { cause: error });
}

describe('a token', () => {
  test('names its caller', async () => {
    expect(await identify(`Bearer ${await sign(CLAIMS)}`)).toEqual({
      audience: 'public',
      subject: 'ann',
      keyId: 'k1',
      roles: ['editor'],
      tenants: ['acme', 'globex'],
      expiresAtMs: (CLAIMS.exp + 60) * 1000,
    });
  });

  test('gets nothing by the name of the system tenant', async () => {
    expect(await identify(`Bearer ${await sign({ ...CLAIMS, tenants: ['acme', 'system'] })}`)).toMatchObject({
      tenants: ['acme'],
    });
  });

  test('may be for several audiences, for all tenants, and have roles that mean nothing here', async () => {
    const claims = {
      ...CLAIMS,
      aud: ['elsewhere', 'plumbline/public'],
      tenants: '*',
      roles: ['viewer', 'cook', 'admin'],
    };
    expect(await identify(`bearer ${await sign(claims)}`)).toMatchObject({ tenants: '*', roles: ['viewer', 'admin'] });
  });

  test('is good for a minute more, for clocks differ', async () => {
    expect(await identify(`Bearer ${await sign({ ...CLAIMS, exp: NOW - 30, nbf: NOW + 30 })}`)).toBeDefined();
  });

  test.for<[string, object, string]>([
    ['has expired', { exp: NOW - 120 }, 'has expired'],
    ['is not valid yet', { nbf: NOW + 600 }, 'not valid yet'],
    ['never expires', { exp: undefined }, 'no claim "exp"'],
    ['is for the other audience', { aud: 'plumbline/private' }, 'this listener takes tokens for "plumbline/public"'],
    ['is for no audience', { aud: undefined }, 'audience'],
    ['is by another issuer', { iss: 'https://evil.example' }, 'another issuer'],
    ['has no subject', { sub: undefined }, 'no claim "sub"'],
    ['has no roles', { roles: undefined }, 'roles'],
    ['has roles that are no list', { roles: 'admin' }, 'roles'],
    ['has no tenants', { tenants: undefined }, 'tenants'],
    ['has a tenant that is no name', { tenants: ['acme', '*'] }, 'tenants'],
  ])('is refused when it %s', async ([, change, words]) => {
    const error = await refusal(`Bearer ${await sign({ ...CLAIMS, ...change })}`);
    expect(error.code).toBe(401);
    expect(error.message).toContain(words);
  });

  test('is refused when another key has signed it, under its name or under one of its own', async () => {
    expect((await refusal(`Bearer ${await sign(CLAIMS, stranger)}`)).message).toContain('not signed by a key');
    expect((await refusal(`Bearer ${await sign(CLAIMS, stranger, { kid: 'k2' })}`)).message).toContain(
      'not signed by a key',
    );
  });

  test('cannot choose to be unsigned, or signed by a secret', async () => {
    expect((await refusal(`Bearer ${new UnsecuredJWT(CLAIMS).encode()}`)).code).toBe(401);
    const secret = new TextEncoder().encode('a secret of at least thirty-two bytes');
    const token = await new SignJWT(CLAIMS).setProtectedHeader({ alg: 'HS256', kid: 'k1' }).sign(secret);
    expect((await refusal(`Bearer ${token}`)).message).toContain('algorithm is not allowed');
  });

  test('is refused when a byte of its claims was changed', async () => {
    const [header, payload = '', signature] = (await sign(CLAIMS)).split('.');
    const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('"editor"', '"admin"')).toString(
      'base64url',
    );
    expect((await refusal(`Bearer ${header}.${forged}.${signature}`)).code).toBe(401);
  });

  test.for([
    [undefined, 'a token is needed'],
    ['', 'a token is needed'],
    ['Basic YTpi', 'not of the form'],
    ['Bearer', 'not of the form'],
    ['Bearer a b', 'not of the form'],
    ['Bearer not-a-token-at-all', 'malformed'],
    ['Bearer a.b.c', 'malformed'],
    [`Bearer ${'x'.repeat(9000)}`, 'more than 8192 characters'],
  ] as const)('is asked for politely when the header is %j', async ([header, words]) => {
    const error = await refusal(header);
    expect(error.code).toBe(401);
    expect(error.message).toContain(words);
    expect(error.message).not.toContain('not-a-token-at-all');
  });

  test("cannot be judged while the keys are away: that is 503, not the caller's fault", async () => {
    const unreachable = createAuthenticator({
      keys: () => Promise.reject(new TypeError('fetch failed')),
      audience: 'public',
      issuer: ISSUER,
    });
    await expect(unreachable(`Bearer ${await sign(CLAIMS)}`)).rejects.toMatchObject({
      code: 503,
      details: { retryAfterSeconds: 1 },
    });
  });
});
