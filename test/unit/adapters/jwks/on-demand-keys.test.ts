import { decodeProtectedHeader, errors, type JWTVerifyGetKey } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { onDemandKeys } from '#adapters/jwks/on-demand-keys.ts';
import { startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

let issuer: TokenIssuer;
let complaints: unknown[];
beforeEach(async () => {
  issuer = await startTokenIssuer();
  complaints = [];
});
afterEach(() => issuer.stop());

const keysOf = (options: { refreshMs?: number; minIntervalMs?: number } = {}): JWTVerifyGetKey =>
  onDemandKeys({ url: issuer.jwksUrl, onError: (error) => complaints.push(error), ...options });

async function find(keys: JWTVerifyGetKey): Promise<unknown> {
  const token = await issuer.sign({});
  const [, payload = '', signature = ''] = token.split('.');
  return keys(decodeProtectedHeader(token) as { alg: string }, { payload, signature });
}

test('nothing is read before there is a token, and nothing again while the keys are fresh', async () => {
  const keys = keysOf();
  expect(issuer.requests).toBe(0);
  expect(await find(keys)).toBeDefined();
  expect(await find(keys)).toBeDefined();
  expect(issuer.requests).toBe(1);
});

test('a key that is not known is looked for, but not sooner than the interval after the last read', async () => {
  const patient = keysOf();
  const eager = keysOf({ minIntervalMs: 0 });
  await find(patient);
  await find(eager);
  await issuer.rotate('second');
  expect(await find(eager)).toBeDefined();
  await expect(find(patient)).rejects.toBeInstanceOf(errors.JWKSNoMatchingKey);
  expect(issuer.requests).toBe(3);
});

test('an issuer that is away stops nobody whose key is known, and is told of', async () => {
  const keys = keysOf({ refreshMs: 0 });
  await find(keys);
  issuer.misbehave((_request, response) => void response.writeHead(500).end());
  expect(await find(keys)).toBeDefined();
  expect(complaints).toHaveLength(1);
});

test('without any keys requests are told so, and the issuer is left in peace until the interval is over', async () => {
  issuer.misbehave((_request, response) => void response.writeHead(500).end());
  const keys = keysOf();
  for (let request = 0; request < 3; request += 1) {
    await expect(find(keys)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
  }
  expect(issuer.requests).toBe(1);
  const eager = keysOf({ minIntervalMs: 0 });
  await expect(find(eager)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
  issuer.misbehave(undefined);
  expect(await find(eager)).toBeDefined();
});

test('a set in which no key is left takes back those from before', async () => {
  const keys = keysOf({ refreshMs: 0 });
  await find(keys);
  issuer.withdraw('first');
  await expect(find(keys)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
});
