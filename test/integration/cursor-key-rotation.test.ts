import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connect } from '#adapters/postgres/client.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { type Client, clientOf } from '#test/http/client.ts';
import { expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { startChild } from '#test/support/child.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { openSse, type SseClient, SseRefused } from '#test/support/sse-client.ts';

interface Server {
  readonly instance: LocalInstance;
  readonly client: Client;
  readonly token: string;
}

const ADMIN = { roles: ['admin'], tenants: '*' } as const;

describe.each(['database', 'file'] as const)('keys in the %s, rotated while two servers run', (place) => {
  let database: TestDatabase;
  let folder: string;
  let env: Record<string, string>;
  let servers: readonly Server[] = [];
  let tenant: string;
  let widgets: string;
  /** All that clients were given, and what they showed. */
  const secrets = new Set<string>();
  const logged: string[] = [];
  /** The second page of a list, of which the first was made with the first key. */
  let nextPage: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-rotation-'));
    database = await createTestDatabase();
    env = place === 'file' ? { CURSOR_KEYS_FILE: join(folder, 'cursor-keys') } : {};
    if (place === 'file') expect(await run('rotate')).toMatch(/^key 0 seals from /);
    servers = [await start(), await start()];
    ({ tenant } = await makeTenant(at(0).instance));
    widgets = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
  });

  afterAll(async () => {
    await Promise.all(servers.map(({ instance }) => instance.stop()));
    await database.drop();
    await rm(folder, { recursive: true });
  });

  test('open streams go on, and each server opens at every moment what the other one sealed', async () => {
    for (const name of ['a', 'b']) await at(0).client.post(widgets, { metadata: { name }, spec: { size: 1 } });
    const first = await cursorAt(0);
    const { metadata } = (await at(0).client.get(`${widgets}?limit=1`)).body;
    secrets.add(metadata.continue);
    nextPage = `${widgets}?limit=1&continue=${metadata.continue}`;
    const client = await watch(0, first);
    expect(await run('rotate', '--after', '4s')).toMatch(/^key 1 seals from 20\d\d-/);
    expect(await run('list')).toMatch(/0 \| seals .*\n *1 \| opens, will seal/);
    const keys = new Set<string>();
    await vi.waitFor(
      async () => {
        const [one, other] = [await cursorAt(0), await cursorAt(1)];
        for (const [server, cursor] of [
          [0, other],
          [1, one],
          [0, first],
          [1, first],
        ] as const) {
          await (await watch(server, cursor)).close();
        }
        keys.add(`${keyOf(one)}${keyOf(other)}`);
        expect([keyOf(one), keyOf(other)]).toEqual([1, 1]);
      },
      { timeout: 30_000, interval: 50 },
    );
    expect(keys).toContain('00');
    await at(0).client.post(widgets, { metadata: { name: 'after' }, spec: { size: 1 } });
    const { id = '' } = await client.waitFor(({ event }) => event === 'ADDED');
    expect([keyOf(id), client.isEnded]).toEqual([1, false]);
    await client.close();
  });

  test('what a retired key sealed is refused by both as retired, in a stream and out of it, pages of lists too, and what the new one sealed is not', async () => {
    const old = [...secrets].find((secret) => !secret.includes('.') && keyOf(secret) === 0) ?? '';
    expect((await at(1).client.get(nextPage)).body.items).toHaveLength(1);
    expect(await run('retire', '1')).toMatch(/^key 1 is in use: rotate first/);
    await letTimePass();
    expect(await run('retire', '0')).toMatch(/^key 0 is retired/);
    expect(await run('retire', '0')).toMatch(/^there is no key 0/);
    for (const server of [0, 1]) {
      await vi.waitFor(async () => expectFailure((await at(server).client.get(nextPage)).body, 410, 'Expired'), 10_000);
      await vi.waitFor(
        async () => {
          const error = await watch(server, old).then(
            (opened) => opened.close(),
            (reason: unknown) => reason,
          );
          expect(error).toBeInstanceOf(SseRefused);
          expectFailure((error as SseRefused).body, 410, 'CursorKeyRetired', 'list again');
        },
        { timeout: 10_000, interval: 100 },
      );
      const inStream = await watch(server, undefined, old);
      const { event, id, data } = await inStream.next();
      expect([event, id]).toEqual(['ERROR', '']);
      expectFailure(data, 410, 'CursorKeyRetired');
      await (await watch(server, await cursorAt(1 - server))).close();
    }
  });

  test('no cursor, no token and no key was logged, but digests of the cursors that were refused', async () => {
    const old = [...secrets].find((secret) => !secret.includes('.') && keyOf(secret) === 0) ?? '';
    const forged = `${old.slice(0, -5)}AAAAA`;
    await expect(watch(0, forged)).rejects.toThrow(SseRefused);
    const digest = createHash('sha256').update(forged).digest('hex').slice(0, 12);
    await vi.waitFor(() => expect(logged.join('\n')).toContain(`"cursorDigest":"${digest}"`), 10_000);
    for (const { instance } of servers) {
      instance.process.kill('SIGTERM');
      logged.push((await instance.process.exit).errors);
    }
    const text = logged.join('\n');
    expect(text).toMatch(/"keys":\[0,1\],"sealing":1,.*"cursor keys changed"/);
    expect(text).toContain('"path":"/watch/v1/events"');
    const parts = [...secrets, ...(await keysInPlace())].flatMap((secret) => [secret.slice(0, 24), secret.slice(-24)]);
    expect(parts.filter((part) => text.includes(part))).toEqual([]);
    expect(secrets.size).toBeGreaterThan(20);
  });

  function at(index: number): Server {
    const server = servers[index];
    if (!server) throw new Error(`there is no server ${index}`);
    return server;
  }

  async function start(): Promise<Server> {
    const instance = await startLocalInstance({
      databaseUrl: database.url,
      env: { ...env, LOG_LEVEL: 'trace' },
      onLine: (line) => void logged.push(line),
    });
    const token = await instance.token({ ...ADMIN, ttlSeconds: 3600 });
    secrets.add(token);
    return { instance, token, client: await clientOf(instance, ADMIN) };
  }

  async function cursorAt(server: number): Promise<string> {
    const { body } = await at(server).client.get(`${widgets}?limit=1`);
    const cursor = String(body.metadata.cursor);
    secrets.add(cursor);
    return cursor;
  }

  async function watch(server: number, from?: string, lastEventId?: string): Promise<SseClient> {
    const { instance, token } = at(server);
    for (const shown of [from, lastEventId]) if (shown !== undefined) secrets.add(shown);
    const query = { tenants: tenant, ...(from !== undefined && { from }) };
    const client = await openSse(watchUrl(instance.baseUrl, query), {
      token,
      ...(lastEventId !== undefined && { lastEventId }),
      onEvent: ({ id }) => void (id && secrets.add(id)),
    });
    if (lastEventId === undefined) expect((await client.next()).event).toBe('READY');
    return client;
  }

  async function run(...args: string[]): Promise<string> {
    const child = startChild('infra/local/cursor-keys.ts', args, {
      env: { DATA_DIR: folder, DATABASE_URL: database.url, ...env },
    });
    const lines: string[] = [];
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
    return lines.join('\n') + (await child.exit).errors;
  }

  /** As if the newest key had sealed for a minute. */
  async function letTimePass(): Promise<void> {
    const path = env['CURSOR_KEYS_FILE'];
    if (path === undefined) {
      await inDatabase((sql) => sql`update plumbline.cursor_key set seals_from = seals_from - interval '1 minute'`);
      return;
    }
    const earlier = new Date(Date.now() - 60_000).toISOString();
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    await writeFile(path, lines.map((line) => line.replace(/@.*/, `@${earlier}`)).join('\n'));
  }

  async function keysInPlace(): Promise<readonly string[]> {
    const path = env['CURSOR_KEYS_FILE'];
    if (path !== undefined)
      return [...(await readFile(path, 'utf8')).matchAll(/:([\w-]{43})/g)].map(([, key = '']) => key);
    const rows = await inDatabase((sql) => sql<{ key: Buffer }[]>`select key from plumbline.cursor_key`);
    return rows.flatMap(({ key }) => [key.toString('hex'), key.toString('base64')]);
  }

  async function inDatabase<T>(work: (sql: ReturnType<typeof connect>) => PromiseLike<T>): Promise<T> {
    const sql = connect(database.url, { applicationName: 'test', maxConnections: 1 });
    try {
      return await work(sql);
    } finally {
      await sql.end();
    }
  }
});

/** The key that sealed a token: its first byte. */
function keyOf(token: string): number | undefined {
  return Buffer.from(token, 'base64url')[0];
}

test.each<[args: readonly string[], complaint: string, env?: Record<string, string>]>([
  [[], 'what is to be done with the keys is missing'],
  [['list', '7'], 'not understood: "list 7"'],
  [['rotate', '--after', 'soon'], '--after is "soon"; allowed: a number and s, m, h or d'],
  [['rotate', '--before', '1h'], "Unknown option '--before'"],
  [['retire'], `retire needs a key's id; got ""`],
  [['retire', 'all'], `retire needs a key's id; got "all"`],
  [['list'], 'the keys are those of CURSOR_KEYS: change them there', { CURSOR_KEYS: `0:${'A'.repeat(43)}` }],
  [['list'], 'CURSOR_KEYS_FILE: ENOENT', { CURSOR_KEYS_FILE: '/nowhere/keys' }],
])('npm run cursor-keys with %j is refused in one line: %s', async (args, complaint, env = {}) => {
  const child = startChild('infra/local/cursor-keys.ts', args, { env });
  const { code, errors } = await child.exit;
  expect([code, errors.startsWith(complaint)], errors).toEqual([1, true]);
});
