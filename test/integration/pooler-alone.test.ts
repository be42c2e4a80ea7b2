/** Servers that reach the database through a transaction pooler and in no other way. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { signOfPooler } from '#adapters/postgres/address.ts';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { startChild } from '#test/support/child.ts';
import { noPgBouncer, runPgBouncer } from '#test/support/pgbouncer.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { type Ran, runProgram, serverEnvironment, startServer } from '#test/support/server-process.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';
import { startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

/** Several processes start in most of them, on whatever the machine has left. */
vi.setConfig({ testTimeout: 120_000 });

const TENANTS = 'plumbline.dev/v1/tenants';
const GATEDS = 'example.dev/v1/namespaces/acme/gateds';
const WRITERS = 4;
const WRITES = 25;

describe.skipIf(noPgBouncer)('through PgBouncer in transaction mode alone', () => {
  let database: TestDatabase;
  let issuer: TokenIssuer;
  let pooler: Awaited<ReturnType<typeof runPgBouncer>>;
  let env: Record<string, string>;
  let token: string;

  /** The same database through the pooler. */
  const pooled = ({ name, password }: { name: string; password: string }): string =>
    `postgres://${name}:${password}@127.0.0.1:${pooler.port}${new URL(database.url).pathname}`;
  let ownerUrl: string;

  beforeAll(async () => {
    database = await createTestDatabase({ migrated: false });
    issuer = await startTokenIssuer();
    const { username, password, pathname } = new URL(database.url);
    const login = { name: `${pathname.slice(1)}_pooled`, password: crypto.randomUUID() };
    const owner = { name: username, password };
    pooler = await runPgBouncer(database.url, [login, owner]);
    ownerUrl = pooled(owner);
    env = { ...serverEnvironment(pooled(login), issuer), DATABASE_DIRECT_URL: 'none', GATE: issuer.jwksUrl };
    const done = await runProgram('set-up', [], { ...env, DATABASE_URL: ownerUrl });
    expect(done).toEqual({ code: 0, output: 'the schema is current; 4 kinds are registered', errors: '' });
    await withSession(database.url, { applicationName: 'test' }, (sql) => makePooledLogin(sql, login));
    token = await issuer.issue({ roles: ['admin'], tenants: '*' });
  });
  afterAll(async () => {
    await pooler?.stop();
    await issuer?.stop();
    await database?.drop();
  });

  async function send(method: string, url: string, body: object): Promise<number> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(url, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': type },
      body: JSON.stringify(body),
    });
    await response.body?.cancel();
    return response.status;
  }

  const create = (url: string, path: string, name: string): Promise<number> =>
    send('POST', `${url}/apis/${path}`, { metadata: { name }, spec: {} });

  const isReady =
    (name: string) =>
    ({ data }: SseClient['events'][number]): boolean =>
      data.subject?.endsWith(`/${name}`) &&
      data.data?.status?.conditions?.some(
        ({ type, status }: Record<string, string>) => type === 'Ready' && status === 'True',
      );

  test('each function works in a process of its own: a write is reconciled, published and watched', async () => {
    const servers = await Promise.all(['api', 'watch', 'publish', 'reconcile'].map((role) => startServer(role, env)));
    const [api, watch] = servers as [(typeof servers)[0], (typeof servers)[0]];
    const stream = await openSse(`${watch.publicUrl}/watch/v1/events`, { token });
    await stream.next();
    expect(await create(api.publicUrl, TENANTS, 'acme')).toBe(201);
    await stream.waitFor(isReady('acme'));
    expect(await create(api.publicUrl, GATEDS, 'one')).toBe(201);
    await stream.waitFor(isReady('one'));
    for (const { opsUrl } of servers) expect((await fetch(`${opsUrl}/readyz`)).status).toBe(200);
    expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0, 0, 0]);
  });

  test('two publishers that look by themselves keep the order of what many write at once', async () => {
    const one = await startServer('api,watch,publish', env);
    const other = await startServer('publish', env);
    const stream = await openSse(`${one.publicUrl}/watch/v1/events?kinds=Gated`, { token });
    await stream.next();
    const names = Array.from({ length: WRITERS }, (_, writer) => `ordered-${writer}`);
    await Promise.all(
      names.map(async (name) => {
        await create(one.publicUrl, GATEDS, name);
        for (let size = 1; size < WRITES; size += 1) {
          expect(await send('PATCH', `${one.publicUrl}/apis/${GATEDS}/${name}`, { spec: { size } })).toBe(200);
        }
      }),
    );
    const changes = (): readonly { seq: string; name: string; size: number | undefined }[] =>
      stream.events
        .filter(({ event }) => event === 'ADDED' || event === 'MODIFIED')
        .map(({ data }) => ({ seq: data.seq, name: data.data.metadata.name, size: data.data.spec.size }));
    await vi.waitFor(() => expect(changes()).toHaveLength(WRITERS * WRITES), 30_000);
    const [first] = changes();
    expect(changes().map(({ seq }) => Number(seq) - Number(first?.seq))).toEqual(changes().map((_, index) => index));
    for (const name of names) {
      const sizes = changes().filter((change) => change.name === name);
      expect(sizes.map(({ size }) => size)).toEqual([
        undefined,
        ...Array.from({ length: WRITES - 1 }, (_, n) => n + 1),
      ]);
    }
    await stream.close();
    await Promise.all([one.stop(), other.stop()]);
  });

  describe('what is run once', () => {
    let dataDir: string;
    beforeAll(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'plumbline-pooled-'));
    });
    afterAll(() => rm(dataDir, { recursive: true }));

    async function run(name: string, args: readonly string[], more: Record<string, string> = {}): Promise<Ran> {
      const child = startChild(`infra/local/${name}.ts`, args, { env: { ...env, DATA_DIR: dataDir, ...more } });
      const lines: string[] = [];
      for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
      const { code, errors } = await child.exit;
      return { code, output: lines.join('\n'), errors };
    }

    test('publishes and reconciles with the login of servers', async () => {
      const api = await startServer('api', env);
      await create(api.publicUrl, GATEDS, 'once');
      await api.stop();
      expect(await run('reconcile', [])).toMatchObject({
        code: 0,
        output: expect.stringMatching(/^ran [1-9]\d* passes; 0 are due, 0 objects fail$/),
        errors: '',
      });
      expect(await run('publish', [])).toMatchObject({
        code: 0,
        output: expect.stringMatching(/^published [1-9]\d* events$/),
        errors: '',
      });
    });

    test('is the work of operators, with the login of the owner', async () => {
      const owner = { DATABASE_URL: ownerUrl };
      expect(await run('migrate', [], owner)).toEqual({ code: 0, output: 'the schema is current', errors: '' });
      expect(await run('block', ['--subject', 'jane', '--reason', 'left'], owner)).toMatchObject({
        code: 0,
        errors: '',
      });
      expect((await run('blocks', [], owner)).output).toContain('jane');
      expect(await run('cursor-keys', ['renew'], owner)).toMatchObject({ code: 0, errors: '' });
    });

    test('is not npm start, which needs the login that owns the database', async () => {
      expect(await run('main', [])).toEqual({
        code: 1,
        output: '',
        errors: expect.stringMatching(/^DATABASE_DIRECT_URL is "none", but npm start migrates .* npm run serve\n$/),
      });
    });

    test('refuses the address of a pooler that nobody named', async () => {
      expect((await run('publish', [], { DATABASE_DIRECT_URL: '' })).errors).toMatch(
        /^DATABASE_URL is the address of a pooler.*DATABASE_DIRECT_URL/,
      );
    });
  });

  test('an address is known as that of a pooler; a server without it known as such does not start', async () => {
    expect(await signOfPooler(ownerUrl)).toBe('two connections to it were lent one session');
    expect(await signOfPooler(database.url)).toBeUndefined();
    const { username, password, pathname } = new URL(database.url);
    const ofSessions = await runPgBouncer(database.url, [{ name: username, password }], { mode: 'session' });
    const url = `postgres://${username}:${password}@127.0.0.1:${ofSessions.port}${pathname}`;
    expect(await signOfPooler(url)).toMatch(/^it refuses what a connection asks for: .*plan_cache_mode/);
    await ofSessions.stop();
    const serve = (more: Record<string, string>): Promise<Ran> =>
      runProgram('main', ['--role', 'api,watch,publish,reconcile'], { ...env, ...more });
    expect(await serve({ DATABASE_DIRECT_URL: '' })).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^DATABASE_URL is the address of a pooler: .* or to none/),
    });
    expect(await serve({ DATABASE_DIRECT_URL: ownerUrl })).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^DATABASE_DIRECT_URL is the address of a pooler: /),
    });
  });
});
