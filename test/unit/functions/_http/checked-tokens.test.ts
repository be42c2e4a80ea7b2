import { errors, generateKeyPair, SignJWT, type CryptoKey } from 'jose';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';

import { createAuthenticator } from '#http/authenticate.ts';
import type { Caller } from '#core/identity.ts';

const ISSUER = 'https://issuer.example';
let pair: { readonly publicKey: CryptoKey; readonly privateKey: CryptoKey };
/** What the issuer says its key is; undefined: it has none. */
let key: CryptoKey | undefined;
let identify: (authorization: string) => Promise<Caller>;

beforeAll(async () => {
  pair = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function token(): Promise<string> {
  key = pair.publicKey;
  identify = createAuthenticator({
    keys: async () => {
      if (key === undefined) throw new errors.JWKSNoMatchingKey();
      return key;
    },
    audience: 'public',
    issuer: ISSUER,
  });
  const signed = await new SignJWT({ roles: ['viewer'], tenants: ['acme'] })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'k1' })
    .setIssuer(ISSUER)
    .setAudience('plumbline/public')
    .setSubject('ann')
    .setExpirationTime('1h')
    .sign(pair.privateKey);
  return `Bearer ${signed}`;
}

test('a token that comes again is the same caller, and its signature is not checked again', async () => {
  const sent = await token();
  const verify = vi.spyOn(crypto.subtle, 'verify');
  const first = await identify(sent);
  for (let n = 0; n < 3; n++) expect(await identify(sent)).toEqual(first);
  expect(verify).toHaveBeenCalledTimes(1);
});

test('nor is that of a token that comes many times at once', async () => {
  const sent = await token();
  const verify = vi.spyOn(crypto.subtle, 'verify');
  await identify(sent);
  await Promise.all(Array.from({ length: 10 }, () => identify(sent)));
  expect(verify).toHaveBeenCalledTimes(1);
});

test('it is refused from the moment when its key is withdrawn, or is another one under the same name', async () => {
  const sent = await token();
  await identify(sent);
  key = undefined;
  await expect(identify(sent)).rejects.toMatchObject({ code: 401 });
  key = (await generateKeyPair('EdDSA', { crv: 'Ed25519' })).publicKey;
  await expect(identify(sent)).rejects.toMatchObject({ code: 401 });
  key = pair.publicKey;
  expect(await identify(sent)).toMatchObject({ subject: 'ann' });
});

test('it is refused once it has expired', async () => {
  const sent = await token();
  await identify(sent);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_662_000 });
  await expect(identify(sent)).rejects.toMatchObject({ code: 401 });
});

test('of a token that differs in one character nothing is remembered', async () => {
  const sent = await token();
  await identify(sent);
  const at = sent.length - 20;
  const other = sent.slice(0, at) + (sent[at] === 'A' ? 'B' : 'A') + sent.slice(at + 1);
  await expect(identify(other)).rejects.toMatchObject({ code: 401 });
});

test('however many come, the latest are remembered', async () => {
  await token();
  const sent = await Promise.all(
    Array.from({ length: 1_001 }, async (_, n) => {
      const signed = new SignJWT({ roles: [], tenants: [], n }).setProtectedHeader({ alg: 'EdDSA', kid: 'k1' });
      const claims = signed.setIssuer(ISSUER).setAudience('plumbline/public').setSubject('ann').setExpirationTime('1h');
      return `Bearer ${await claims.sign(pair.privateKey)}`;
    }),
  );
  for (const each of sent) await identify(each);
  const verify = vi.spyOn(crypto.subtle, 'verify');
  await identify(sent.at(-1) ?? '');
  expect(verify).not.toHaveBeenCalled();
  await identify(sent[0] ?? '');
  expect(verify).toHaveBeenCalledTimes(1);
});
