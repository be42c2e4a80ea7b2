/** `npm start` with an issuer of its own: its keys come over HTTP, behind a proxy that takes it away. */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { addTokenBlock } from '#adapters/postgres/token-block-list.ts';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { writeTokenFiles } from '#infra/_shared/tokens/token-files.ts';
import { type Answer, clientWith } from '#test/http/client.ts';
import { expectStatus, TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import { expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';
import { nowSeconds, startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

/** What is promised of blocks. */
const DEADLINE_MS = 5_000;
const ADMIN = { roles: ['admin'], tenants: '*' } as const;

let database: TestDatabase;
let sql: Sql;
let issuer: TokenIssuer;
let proxy: TcpProxy;
let dataDir: string;
let developmentToken: string;
let instance: LocalInstance;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'test' });
  issuer = await startTokenIssuer();
  proxy = await startTcpProxy({ host: '127.0.0.1', port: issuer.port });
  dataDir = await mkdtemp(join(tmpdir(), 'plumbline-issuer-'));
  // As an earlier start without an issuer leaves it.
  const development = await loadDevelopmentIdentity(dataDir);
  await writeTokenFiles(dataDir, development);
  developmentToken = await development.issueToken({ ...ADMIN, subject: 'x', audience: 'public', ttlSeconds: 600 });
  await proxy.refuse();
  instance = await startLocalInstance({
    databaseUrl: database.url,
    dataDir,
    token: issuer.issue,
    env: {
      TOKEN_ISSUER: issuer.issuer,
      TOKEN_JWKS_URL: `http://127.0.0.1:${proxy.port}/keys`,
      TOKEN_PUBLIC_AUDIENCE: 'https://plumbline.example',
      TOKEN_PRIVATE_AUDIENCE: 'https://controllers.example',
      TOKEN_TENANTS_CLAIM: 'https://example.com/tenants',
      TOKEN_ROLES_CLAIM: '/resource_access/plumbline/roles',
    },
  });
});

afterAll(async () => {
  await instance?.stop();
  await proxy.stop();
  await issuer.stop();
  await sql.end();
  await database.drop();
  await rm(dataDir, { recursive: true });
});

interface Wanted {
  readonly subject?: string;
  readonly audience?: string;
  readonly roles?: readonly string[];
  readonly tenants?: '*' | readonly string[];
  readonly ttlSeconds?: number;
}

/** A token as this installation's issuer makes them. */
function issue({
  subject = uniqueName('s'),
  audience = 'https://plumbline.example',
  roles = ['admin'],
  tenants = '*',
  ttlSeconds = 600,
}: Wanted = {}): Promise<string> {
  return issuer.sign({
    iss: issuer.issuer,
    aud: audience,
    sub: subject,
    jti: crypto.randomUUID(),
    exp: nowSeconds() + ttlSeconds,
    'https://example.com/tenants': tenants,
    resource_access: { plumbline: { roles }, account: { roles: ['manage-account'] } },
  });
}

function get(token: string, baseUrl: string = instance.baseUrl): Promise<Answer> {
  return clientWith(baseUrl, `Bearer ${token}`).get(TENANTS);
}

async function readiness(): Promise<string> {
  return (await fetch(`${instance.opsUrl}/readyz?exclude=publishing`)).text();
}

async function watch(token: string): Promise<SseClient> {
  const client = await openSse(watchUrl(instance.baseUrl, {}), { token });
  expect((await client.next()).event).toBe('READY');
  return client;
}

test('a server starts while the issuer is away: it is not ready and says why, and who comes is told to come again', async () => {
  expect(await readiness()).toMatch(/"identity","status":"not ready","reason":"the keys of tokens cannot be read/);
  const answer = await get(await issue());
  expectStatus(answer, 503, 'ServiceUnavailable', 'keys that tokens are checked with cannot be had');
  expect(answer.headers.get('Retry-After')).toBe('5');
  // What no key could make good is refused all the same.
  expectStatus(await get('nonsense'), 401, 'Unauthorized');
  await proxy.resume();
  await expect.poll(readiness, { timeout: 20_000 }).toContain('"identity","status":"ready"');
  expect((await get(await issue())).status).toBe(200);
});

describe('once its keys are known', () => {
  beforeEach(async () => {
    await expect.poll(readiness, { timeout: 20_000 }).toContain('"identity","status":"ready"');
  });

  test('their age is a metric', async () => {
    const metrics = await (await fetch(`${instance.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^plumbline_token_keys_age_seconds \d/m);
  });

  test('nothing is left of development: no key, no token, and those that there were are refused', async () => {
    expect(await readdir(dataDir)).not.toContain('tokens');
    expect(await readdir(join(dataDir, 'keys')).catch(() => [])).not.toContain('development.jwk.json');
    expectStatus(await get(developmentToken), 401, 'Unauthorized');
    expect(instance.log()).not.toContain('tokens/admin');
  });

  test('each listener takes tokens for its own audience alone', async () => {
    const forUsers = await issue();
    const forControllers = await issue({ audience: 'https://controllers.example', roles: ['controller'] });
    expect((await get(forUsers)).status).toBe(200);
    expect((await get(forControllers, instance.controllerUrl)).status).toBe(200);
    expectStatus(await get(forControllers), 401, 'Unauthorized', 'takes tokens for "https://plumbline.example"');
    expectStatus(await get(forUsers, instance.controllerUrl), 401, 'Unauthorized', 'audience');
    expectStatus(await get(await issue({ audience: 'plumbline/public' })), 401, 'Unauthorized', 'audience');
  });

  test('roles and tenants are those of the claims that were named', async () => {
    const viewer = clientWith(instance.baseUrl, `Bearer ${await issue({ roles: ['viewer', 'cook'] })}`);
    const refused = await viewer.post(TENANTS, { metadata: { name: uniqueName('t') } });
    expectStatus(refused, 403, 'Forbidden', 'roles: viewer');
    expect(refused.headers.get('WWW-Authenticate')).toBe('Bearer realm="plumbline", error="insufficient_scope"');
    const misplaced = await issuer.issue({ ...ADMIN, audience: 'public' });
    expectStatus(await get(misplaced), 401, 'Unauthorized');
  });

  test('an issuer that goes away stops nobody whose key is known, and its new keys are taken once it is back', async () => {
    await proxy.refuse();
    expect((await get(await issue())).status).toBe(200);
    expect(await readiness()).toContain('"identity","status":"ready"');
    await issuer.rotate(uniqueName('k'));
    expectStatus(await get(await issue()), 503, 'ServiceUnavailable', 'keys');
    await proxy.resume();
    expect((await get(await issue())).status).toBe(200);
  });

  test.each(['subject', 'tokenId'] as const)('a block of a %s ends its open streams in time', async (name) => {
    const token = await issue({ roles: ['viewer'] });
    const { sub = '', jti = '' } = decodeJwt(token);
    const [cut, kept] = [await watch(token), await watch(await issue({ roles: ['viewer'] }))];
    const block = name === 'subject' ? { subject: sub } : { tokenId: jti };
    await addTokenBlock(sql, { block, reason: 'a test', forSeconds: undefined, by: 'test' });
    const { data } = await cut.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS);
    expectFailure(data, 401, 'Unauthorized', 'blocked');
    expectStatus(await get(token), 401, 'Unauthorized', 'blocked');
    expect(kept.isEnded).toBe(false);
    await Promise.all([cut.close(), kept.close()]);
  });

  test('a stream ends with its token', async () => {
    const stream = await watch(await issue({ roles: ['viewer'], ttlSeconds: -57 }));
    const { data } = await stream.waitFor(({ event }) => event === 'ERROR');
    expectFailure(data, 401, 'Unauthorized', 'expired');
    await stream.close();
  });

  test('a key that was withdrawn ends its streams once that was read, and its tokens are refused', async () => {
    const old = await issue({ roles: ['viewer'] });
    const stream = await watch(old);
    issuer.published.splice(0);
    await issuer.rotate(uniqueName('k'));
    const other = await watch(await issue({ roles: ['viewer'] }));
    const { data } = await stream.waitFor(({ event }) => event === 'ERROR');
    expectFailure(data, 401, 'Unauthorized', 'withdrawn');
    expectStatus(await get(old), 401, 'Unauthorized', 'not signed by a key');
    expect(other.isEnded).toBe(false);
    await Promise.all([stream.close(), other.close()]);
  });
});
