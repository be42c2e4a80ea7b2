/** Each is a token that somebody hopes will be taken. The issuer is real: its keys come over HTTP. */

import { createHmac } from 'node:crypto';
import { base64url, exportJWK, exportSPKI, generateKeyPair, importJWK, type CryptoKey, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { remoteKeys } from '#adapters/jwks/remote-keys.ts';
import { createAuthenticator } from '#http/authenticate.ts';
import type { Caller } from '#core/identity.ts';
import { StatusError } from '#core/status-error.ts';
import { nowSeconds, startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

const lifetime = new AbortController();
let issuer: TokenIssuer;
/** What an attacker would have the server ask. */
let elsewhere: TokenIssuer;
let stranger: CryptoKey;
let rsaKey: CryptoKey;
let textsKey: CryptoKey;
let identify: (authorization: string | undefined) => Promise<Caller>;

beforeAll(async () => {
  issuer = await startTokenIssuer();
  elsewhere = await startTokenIssuer();
  rsaKey = await issuer.rotate('rsa', 'RS256');
  textsKey = await issuer.rotate('texts');
  await issuer.rotate('newest');
  stranger = (await generateKeyPair('EdDSA', { extractable: true })).privateKey;
  const ignore = (): void => undefined;
  const { find } = remoteKeys({
    url: issuer.jwksUrl,
    signal: lifetime.signal,
    onChange: ignore,
    onError: ignore,
    onRecovery: ignore,
    minIntervalMs: 10,
  });
  identify = createAuthenticator({ keys: find, audience: 'public', issuer: issuer.issuer });
});

afterAll(async () => {
  lifetime.abort();
  await issuer.stop();
  await elsewhere.stop();
});

function claims(change: JWTPayload = {}): JWTPayload {
  const iat = nowSeconds();
  const good = { iss: issuer.issuer, aud: 'plumbline/public', sub: 'ann', roles: ['admin'], tenants: '*' };
  return { ...good, iat, exp: iat + 600, ...change };
}

async function refusalOf(token: string): Promise<StatusError> {
  const error: unknown = await identify(`Bearer ${token}`).catch((thrown: unknown) => thrown);
  if (error instanceof StatusError) return error;
  throw new Error('accepted, or failed otherwise', { cause: error });
}

async function expectRefused(token: string, words: string): Promise<void> {
  const error = await refusalOf(token);
  expect([error.code, error.message]).toEqual([401, expect.stringContaining(words)]);
}

/** A compact JWT of any bytes, with whatever signature. */
function compact(header: string, payload: string, sign: (input: string) => Uint8Array | string): string {
  const input = `${base64url.encode(header)}.${base64url.encode(payload)}`;
  return `${input}.${base64url.encode(sign(input))}`;
}

/** Signed by the issuer, over exactly these texts. */
async function signedTexts(header: string, payload: string): Promise<string> {
  const input = `${base64url.encode(header)}.${base64url.encode(payload)}`;
  const signature = await crypto.subtle.sign('Ed25519', textsKey, new TextEncoder().encode(input));
  return `${input}.${base64url.encode(new Uint8Array(signature))}`;
}

test('a good one is taken, of each algorithm', async () => {
  expect(await identify(`Bearer ${await issuer.sign(claims())}`)).toMatchObject({ subject: 'ann', tenants: '*' });
  const byRsa = await issuer.sign(claims(), { alg: 'RS256', kid: 'rsa' }, rsaKey);
  expect(await identify(`Bearer ${byRsa}`)).toMatchObject({ roles: ['admin'] });
});

describe('a signature', () => {
  test.each(['none', 'None', 'NONE', 'nOnE'])('cannot be left out: alg %s', async (alg) => {
    const unsigned = compact(JSON.stringify({ alg, kid: 'newest' }), JSON.stringify(claims()), () => '');
    await expectRefused(unsigned, alg === 'none' ? 'algorithm is not allowed' : 'token');
    await expectRefused(`${unsigned}AA`, 'token');
  });

  test('cannot be cut off, or be of another token', async () => {
    const token = await issuer.sign(claims());
    const [header = '', payload = ''] = token.split('.');
    await expectRefused(`${header}.${payload}.`, 'token');
    await expectRefused(`${header}.${payload}`, 'malformed');
    const [, , other = ''] = (await issuer.sign(claims({ sub: 'eve' }))).split('.');
    await expectRefused(`${header}.${payload}.${other}`, 'not signed by a key');
  });

  test('cannot be a digest made with the public key, in any form of it', async () => {
    const [, published = {}] = issuer.published;
    const key = (await importJWK(published, 'RS256', { extractable: true })) as CryptoKey;
    const pem = await exportSPKI(key);
    for (const secret of [pem, `${pem}\n`, JSON.stringify(published), published.n ?? '']) {
      for (const [alg, hash] of [
        ['HS256', 'sha256'],
        ['HS512', 'sha512'],
      ] as const) {
        const header = JSON.stringify({ alg, kid: published.kid });
        const sign = (input: string): Uint8Array => createHmac(hash, secret).update(input).digest();
        await expectRefused(compact(header, JSON.stringify(claims()), sign), 'algorithm is not allowed');
      }
    }
  });

  test('cannot be of an algorithm that is not pinned, though the key could make it', async () => {
    const pss = await importJWK({ ...(await exportJWK(rsaKey)), alg: 'PS256' }, 'PS256');
    const token = await issuer.sign(claims(), { alg: 'PS256', kid: 'rsa' }, pss);
    await expectRefused(token, 'algorithm is not allowed');
  });

  test('cannot be checked with a key of another algorithm', async () => {
    await expectRefused(await issuer.sign(claims(), { alg: 'EdDSA', kid: 'rsa' }, stranger), 'not signed by a key');
  });
});

describe('a key', () => {
  test.each(['jwk', 'jku', 'x5u', 'x5c'])('cannot be brought along as %s, and nobody is asked for it', async (name) => {
    const jwk = await exportJWK(stranger);
    const { d: _, ...publicJwk } = jwk;
    elsewhere.published.push({ ...publicJwk, kid: 'newest' });
    const values = { jwk: publicJwk, jku: elsewhere.jwksUrl, x5u: elsewhere.jwksUrl, x5c: [publicJwk.x] };
    for (const kid of ['newest', 'mine', undefined]) {
      const token = await issuer.sign(claims(), { [name]: values[name as keyof typeof values], kid }, stranger);
      expect((await refusalOf(token)).code).toBe(401);
    }
    expect(elsewhere.requests).toBe(0);
  });

  test.each([
    '../../../../dev/null',
    "' or 1=1 --",
    'http://127.0.0.1:1/keys',
    '__proto__',
    'constructor',
    'first\0',
    'k'.repeat(3_000),
    '',
  ])('id is only compared: %j', async (kid) => {
    await expectRefused(await issuer.sign(claims(), { kid }, stranger), 'not signed by a key');
  });

  test('id is a text', async () => {
    for (const kid of [1, null, {}, ['newest'], true]) {
      expect((await refusalOf(await issuer.sign(claims(), { kid: kid as string }, stranger))).code).toBe(401);
    }
  });
});

describe('a header', () => {
  test.each([['exp'], ['b64'], ['unknown'], []])('with the critical field %s is refused', async (...crit) => {
    const header = JSON.stringify({ alg: 'EdDSA', kid: 'texts', crit, b64: false, exp: 1, unknown: 1 });
    await expectRefused(await signedTexts(header, JSON.stringify(claims())), 'malformed');
  });

  test.each(['logout+jwt', 'secevent+jwt', 'dpop+jwt', 'application/id_token+jwt', '', 'JOSE'])(
    'of type %j is of a token for something else',
    async (typ) => {
      await expectRefused(await issuer.sign(claims(), { typ }), 'of another type');
    },
  );

  test.each(['JWT', 'jwt', 'at+jwt', 'application/at+jwt', undefined])('of type %j is good', async (typ) => {
    expect(await identify(`Bearer ${await issuer.sign(claims(), { typ })}`)).toMatchObject({ subject: 'ann' });
  });

  test('has no field twice', async () => {
    const twice = '{"alg":"EdDSA","kid":"texts","kid":"texts"}';
    await expectRefused(await signedTexts(twice, JSON.stringify(claims())), 'twice');
  });
});

describe('claims', () => {
  const HEADER = '{"alg":"EdDSA","kid":"texts"}';

  test.each([
    ['roles', '"roles":["viewer"]'],
    ['sub, escaped', '"\\u0073ub":"eve"'],
    ['a field within one', '"other":{"a":1,"b":[{"c":1,"c":2}]}'],
  ])('do not stand twice: %s', async (_, second) => {
    const payload = JSON.stringify(claims()).replace(/\}$/, `,${second}}`);
    await expectRefused(await signedTexts(HEADER, payload), 'twice');
  });

  test('may repeat a key in another object, and hold anything that is not asked for', async () => {
    const others =
      '"a":{"sub":1,"a":"\\"sub\\":{"},"b":[{"x":1},{"x":2}],"__proto__":{"roles":[]},"id":12345678901234567890';
    const token = await signedTexts(HEADER, JSON.stringify(claims()).replace(/\}$/, `,${others}}`));
    expect(await identify(`Bearer ${token}`)).toMatchObject({ subject: 'ann', roles: ['admin'] });
  });

  test('are not inherited', async () => {
    const { roles: _, tenants: __, ...bare } = claims();
    const payload = JSON.stringify(bare).replace(/\}$/, ',"__proto__":{"roles":["admin"],"tenants":"*"}}');
    await expectRefused(await signedTexts(HEADER, payload), 'roles, tenants');
  });

  test.each(['[]', '"text"', 'null', '1', '{', '', '{"a":1}{"b":2}', '\u0000'])(
    'are an object: %j',
    async (payload) => {
      await expectRefused(await signedTexts(HEADER, payload), 'token');
    },
  );

  test.for<[string, JWTPayload | object, string]>([
    ['without an end', { exp: undefined }, 'no claim "exp"'],
    ['with an end that is a text', { exp: '9999999999' }, '"exp" is wrong'],
    ['with no end but null', { exp: null }, '"exp" is wrong'],
    ['that ended 61 s ago', { exp: nowSeconds() - 61 }, 'has expired'],
    ['that ended long before 1970', { exp: -1 }, 'has expired'],
    ['that begin in two minutes', { nbf: nowSeconds() + 120 }, 'not valid yet'],
    ['that begin at a text', { nbf: '0' }, '"nbf" is wrong'],
    ['made in two minutes', { iat: nowSeconds() + 120 }, 'issued in the future'],
    ['made at a text', { iat: 'now' }, '"iat" is wrong'],
    ['by another issuer', { iss: 'https://issuer.example.evil' }, 'another issuer'],
    ['by the issuer with a slash', { iss: 'https://issuer.example/' }, 'another issuer'],
    ['by two issuers', { iss: ['https://issuer.example', 'https://evil.example'] }, 'another issuer'],
    ['by nobody', { iss: undefined }, 'issuer'],
    ['for the other listener', { aud: 'plumbline/private' }, 'another audience'],
    ['for something that begins alike', { aud: 'plumbline/public/' }, 'another audience'],
    ['for all', { aud: '*' }, 'another audience'],
    ['for an object', { aud: { 'plumbline/public': true } }, 'another audience'],
    ['for nobody', { aud: [] }, 'another audience'],
    ['of nobody', { sub: '' }, 'sub'],
    ['of a number', { sub: 1 }, 'sub'],
    ['of a subject with NUL', { sub: 'ann\0' }, 'sub'],
    ['of a subject with half a character', { sub: 'ann\ud800' }, 'sub'],
    ['of a subject that is endless', { sub: 'a'.repeat(254) }, 'sub'],
    ['with an id that is none', { jti: '' }, 'jti'],
    ['with tenants that are none', { tenants: ['acme', '../etc'] }, 'tenants'],
    ['with a list of all and more', { tenants: ['*', 'acme'] }, 'tenants'],
    ['with tenants in one text', { tenants: 'acme globex' }, 'tenants'],
    ['with roles in one text', { roles: 'admin' }, 'roles'],
    ['with roles in an object', { roles: { 0: 'admin' } }, 'roles'],
  ])('%s are refused', async ([, change, words]) => {
    await expectRefused(await issuer.sign(claims(change as JWTPayload)), words);
  });

  test('without an end in numbers are refused: 1e999 is none', async () => {
    const payload = JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999');
    await expectRefused(await signedTexts(HEADER, payload), '"exp" is wrong');
  });

  test('are good for a minute before and after, for clocks differ', async () => {
    const now = nowSeconds();
    const token = await issuer.sign(claims({ exp: now - 50, nbf: now + 50, iat: now + 50 }));
    expect(await identify(`Bearer ${token}`)).toMatchObject({ expiresAtMs: (now + 10) * 1_000 });
  });
});

describe('what is no token of ours', () => {
  test.each([
    ['a giant one', 'a'.repeat(8_193), 'more than 8192 characters'],
    ['a giant header', `${'a'.repeat(8_000)}.e30.AA`, 'malformed'],
    ['dots', '.'.repeat(8_000), 'malformed'],
    ['one that is encrypted', 'e30.e30.e30.e30.e30', 'malformed'],
    ['padding', 'e30=.e30=.AA==', 'malformed'],
    ['other letters', 'ü.ü.ü', 'malformed'],
    ['JSON', '{"payload":"e30","signatures":[]}', 'malformed'],
  ])('is refused: %s', async (_, token, words) => {
    await expectRefused(token, words);
  });

  test('makes nobody look for its key when no key could make it good', async () => {
    const known = issuer.requests;
    for (const change of [{ iss: 'https://evil.example' }, { exp: nowSeconds() - 61 }]) {
      expect((await refusalOf(await issuer.sign(claims(change), { kid: 'unknown' }, stranger))).code).toBe(401);
    }
    for (const header of [{ alg: 'HS256' }, { crit: ['exp'] }]) {
      const text = JSON.stringify({ alg: 'EdDSA', kid: 'unknown', ...header });
      expect((await refusalOf(compact(text, JSON.stringify(claims()), () => 'AA'))).code).toBe(401);
    }
    expect(issuer.requests).toBe(known);
  });

  test('is not told apart by whether its key is known', async () => {
    const known = await refusalOf(await issuer.sign(claims(), {}, stranger));
    const unknown = await refusalOf(await issuer.sign(claims(), { kid: 'unknown' }, stranger));
    expect(known.toBody()).toEqual(unknown.toBody());
  });
});
