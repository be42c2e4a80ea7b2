/** With a real issuer, behind a proxy that takes it away. */

import { type CryptoKey, errors, exportJWK, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type RemoteKeys, remoteKeys, type RemoteKeysOptions } from '#adapters/jwks/remote-keys.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';
import { startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

const UNAVAILABLE = { code: 503, reason: 'ServiceUnavailable' };

let issuer: TokenIssuer;
let proxy: TcpProxy;
let lifetime: AbortController;
let told: string[];

beforeEach(async () => {
  issuer = await startTokenIssuer();
  proxy = await startTcpProxy({ host: '127.0.0.1', port: issuer.port });
  lifetime = new AbortController();
  told = [];
});

afterEach(async () => {
  lifetime.abort();
  await proxy.stop();
  await issuer.stop();
});

function follow(options: Partial<RemoteKeysOptions> = {}): RemoteKeys {
  return remoteKeys({
    url: `http://127.0.0.1:${proxy.port}/keys`,
    signal: lifetime.signal,
    onChange: (keyIds) => void told.push(`keys ${keyIds.join(' ')}`),
    onError: () => void told.push('away'),
    onRecovery: () => void told.push('back'),
    minIntervalMs: 20,
    ...options,
  });
}

/** Verifies a token of the issuer, whoever signed it. */
async function check(keys: RemoteKeys, header: object = {}, key?: CryptoKey): Promise<void> {
  await jwtVerify(await issuer.sign({ sub: 'ann' }, header, key), keys.find);
}

describe('keys of an issuer', () => {
  test.each(['EdDSA', 'ES256', 'RS256'] as const)('are read once, and check tokens: %s', async (algorithm) => {
    await issuer.rotate('second', algorithm);
    const keys = follow();
    for (let n = 0; n < 20; n++) await check(keys);
    expect(issuer.requests).toBe(1);
    expect(keys.problem()).toBeUndefined();
    expect(told).toEqual(['keys first second']);
  });

  test('are read once for all who come at the start', async () => {
    const keys = follow();
    await Promise.all(Array.from({ length: 50 }, () => check(keys)));
    expect(issuer.requests).toBe(1);
  });

  test('rotate: a token by a new key is taken as soon as it is published', async () => {
    const keys = follow();
    await check(keys);
    await issuer.rotate('second');
    await check(keys);
    expect(told).toEqual(['keys first', 'keys first second']);
  });

  test('that were withdrawn are refused after the next read', async () => {
    const keys = follow({ refreshMs: 20 });
    const token = await issuer.sign({ sub: 'ann' });
    await jwtVerify(token, keys.find);
    await issuer.rotate('second');
    issuer.withdraw('first');
    await expect
      .poll(() => jwtVerify(token, keys.find).catch((error: unknown) => error))
      .toBeInstanceOf(errors.JWKSNoMatchingKey);
    expect([keys.trusts('first'), keys.trusts('second')]).toEqual([false, true]);
    await check(keys);
  });

  test('are not known without a key id when several fit', async () => {
    await issuer.rotate('second');
    await expect(check(follow(), { kid: undefined })).rejects.toBeInstanceOf(errors.JWKSMultipleMatchingKeys);
  });
});

describe('a key id that nobody knows', () => {
  test('is looked for by one more read, whoever asks', async () => {
    const keys = follow({ minIntervalMs: 1_000 });
    await check(keys);
    const asked = Array.from({ length: 60 }, (_, n) => check(keys, { kid: `made up ${n}` }));
    for (const answer of await Promise.allSettled(asked)) {
      expect(answer).toMatchObject({ reason: { code: 'ERR_JWKS_NO_MATCHING_KEY' } });
    }
    expect(issuer.requests).toBe(2);
  });

  test('makes nobody ask again before its time, and few requests wait for that', async () => {
    const keys = follow({ minIntervalMs: 600_000 });
    await check(keys);
    const asked = Array.from({ length: 500 }, (_, n) => check(keys, { kid: `made up ${n}` }));
    const refused: unknown[] = [];
    for (const answer of asked) void answer.catch((error: unknown) => refused.push(error));
    await expect.poll(() => refused.length).toBe(500 - 64);
    expect(refused[0]).toMatchObject({ code: 429, details: { retryAfterSeconds: 600 } });
    await check(keys);
    expect(issuer.requests).toBe(1);
    lifetime.abort();
    await Promise.allSettled(asked);
    expect(issuer.requests).toBe(1);
  });
});

describe('an issuer that is away', () => {
  test('does not matter to tokens whose key is known; for others it cannot be told, until it is back', async () => {
    const keys = follow();
    await check(keys);
    await proxy.refuse();
    await check(keys);
    await expect(check(keys, { kid: 'unknown' })).rejects.toMatchObject(UNAVAILABLE);
    expect(keys.problem()).toBeUndefined();
    await issuer.rotate('second');
    await proxy.resume();
    await check(keys);
    expect(told).toEqual(['keys first', 'away', 'keys first second', 'back']);
  });

  test('at the start is told, and asked again until it answers', async () => {
    await proxy.refuse();
    const keys = follow();
    await expect(check(keys)).rejects.toMatchObject({ ...UNAVAILABLE, details: { retryAfterSeconds: 1 } });
    await expect.poll(() => keys.problem()).toContain('ECONNREFUSED');
    await proxy.resume();
    await expect.poll(() => keys.problem()).toBeUndefined();
    await check(keys);
    expect(told).toEqual(['away', 'keys first', 'back']);
  });

  test('is asked no oftener by many who come, while there are no keys at all', async () => {
    issuer.misbehave((_, response) => void response.writeHead(500).end());
    const keys = follow({ minIntervalMs: 600_000 });
    for (let round = 0; round < 2; round++) {
      for (const answer of await Promise.allSettled(Array.from({ length: 200 }, () => check(keys)))) {
        expect(answer).toMatchObject({ reason: UNAVAILABLE });
      }
    }
    expect(issuer.requests).toBe(1);
  });

  test('and takes connections without a word keeps nobody waiting for long', async () => {
    proxy.stall();
    const keys = follow({ timeoutMs: 50 });
    await expect(check(keys)).rejects.toMatchObject(UNAVAILABLE);
    expect(told).toEqual(['away']);
  });

  test.for<[string, Parameters<TokenIssuer['misbehave']>[0]]>([
    ['an error', (_, response) => void response.writeHead(500).end(JSON.stringify({ keys: [] }))],
    ['a byte, and then nothing', (_, response) => void response.writeHead(200).write('{')],
    ['its keys, and 256 KiB more', (_, response) => void response.end(`{"keys":${' '.repeat(262_144)}[]}`)],
    ['a page', (_, response) => void response.end('<html>Sign in</html>')],
    ['another object', (_, response) => void response.end('{"keys":{"first":{}}}')],
    ['keys that are none', (_, response) => void response.end('{"keys":["first"]}')],
    ['a thousand keys', (_, response) => void response.end(`{"keys":[${'{},'.repeat(1_000)}{}]}`)],
    [
      'no end of it',
      (_, response) =>
        void setImmediate(function more() {
          if (response.writable && !response.destroyed) response.write(' '.repeat(65_536), () => setImmediate(more));
        }),
    ],
    [
      'half of it',
      (_, response) =>
        void response.writeHead(200, { 'Content-Length': 1_000 }).end('{"keys":[', () => response.destroy()),
    ],
  ])('or answers %s: the keys from before go on, and other tokens are 503', async ([, listener]) => {
    const keys = follow({ refreshMs: 10, timeoutMs: 500 });
    await check(keys);
    issuer.misbehave(listener);
    await expect.poll(() => told, { timeout: 10_000 }).toContain('away');
    await check(keys);
    await expect(check(keys, { kid: 'unknown' })).rejects.toMatchObject(UNAVAILABLE);
    issuer.misbehave(undefined);
    await expect.poll(() => told, { timeout: 10_000 }).toContain('back');
  });

  test('is not looked for elsewhere: redirects are not followed', async () => {
    const elsewhere = await startTokenIssuer();
    issuer.misbehave((_, response) => void response.writeHead(302, { Location: elsewhere.jwksUrl }).end());
    const keys = follow();
    await expect(check(keys)).rejects.toMatchObject(UNAVAILABLE);
    await expect.poll(() => keys.problem()).toContain('answered 302');
    expect(elsewhere.requests).toBe(0);
    await elsewhere.stop();
  });
});

test('an issuer that publishes no key takes back those that it had: then nothing can be checked', async () => {
  const keys = follow({ refreshMs: 10 });
  await check(keys);
  issuer.withdraw('first');
  await expect.poll(() => keys.problem()).toContain('no key for EdDSA (Ed25519), ES256 or RS256');
  await expect(check(keys)).rejects.toMatchObject(UNAVAILABLE);
});

test('what is not a public key for signatures is left out, whatever else is published', async () => {
  const own = await issuer.rotate('own');
  issuer.withdraw('first');
  const [first = {}] = issuer.published;
  const privateKey = await exportJWK(await issuer.rotate('private'));
  issuer.withdraw('private');
  issuer.published.push(
    { kty: 'oct', kid: 'secret', k: 'c2VjcmV0', alg: 'HS256' },
    { ...first, kid: 'encryption', use: 'enc' },
    { ...privateKey, kid: 'private' },
    { ...first, kid: 'broken', x: 'AA' },
    { kty: 'RSA', kid: 'short', e: 'AQAB', n: 'A'.repeat(171) },
    { kty: 'EC', kid: 'other curve', crv: 'P-384', x: 'AA', y: 'AA' },
    { kty: 'martian', kid: 'martian' },
  );
  await check(follow(), { kid: 'own' }, own);
  expect(told).toEqual(['keys own']);
});
