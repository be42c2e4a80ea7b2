/** The production root: functions in processes of their own, on one database, with a login that may only serve. */

import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { withSession } from '#adapters/postgres/session.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import {
  createServerLogin,
  runProgram,
  serverEnvironment,
  type ServerProcess,
  startServer,
} from '#test/support/server-process.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';
import { startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

/** Four processes start in most of them, on whatever the machine has left. */
vi.setConfig({ testTimeout: 120_000 });

let database: TestDatabase;
let issuer: TokenIssuer;
let env: Record<string, string>;
let token: string;
let gate: Gate;

beforeAll(async () => {
  database = await createTestDatabase({ migrated: false });
  issuer = await startTokenIssuer();
  gate = await openGate();
  env = { ...serverEnvironment(database.url, issuer), GATE: gate.url };
  const { code, output, errors } = await runProgram('set-up', [], env);
  expect([code, output, errors]).toEqual([0, 'the schema is current; 4 kinds are registered', '']);
  env['DATABASE_URL'] = await createServerLogin(database.url);
  token = await issuer.issue({ roles: ['admin'], tenants: '*' });
});

afterAll(async () => {
  gate.close();
  await issuer.stop();
  await database.drop();
});

/** Each in a process of its own. */
function start<const Roles extends readonly string[]>(
  ...roles: Roles
): Promise<{ readonly [Index in keyof Roles]: ServerProcess }> {
  return Promise.all(roles.map((role) => startServer(role, env))) as never;
}

async function create(url: string, path: string, name: string): Promise<number> {
  const response = await fetch(`${url}/apis/${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ metadata: { name }, spec: {} }),
  });
  await response.body?.cancel();
  return response.status;
}

const TENANTS = 'plumbline.dev/v1/tenants';
const watchAt = (server: ServerProcess, lastEventId = ''): Promise<SseClient> =>
  openSse(`${server.publicUrl}/watch/v1/events`, { token, lastEventId });
const isAbout =
  (name: string) =>
  ({ data }: { data: { subject?: string } }): boolean =>
    data.subject?.endsWith(`/${name}`) ?? false;

describe('one process for each function', () => {
  test('a write at one is reconciled by a second, published by a third, and reaches a watcher at a fourth', async () => {
    const servers = await start('api', 'watch', 'publish', 'reconcile');
    const [api, watch] = servers;
    const stream = await watchAt(watch);
    await stream.next();
    expect(await create(api.publicUrl, TENANTS, 'roles')).toBe(201);
    await stream.waitFor(isAbout('roles'));
    const isReady = ({ data }: SseClient['events'][number]): boolean =>
      data.data?.status?.conditions?.some(
        ({ type, status }: Record<string, string>) => type === 'Ready' && status === 'True',
      );
    await stream.waitFor((event) => isAbout('roles')(event) && isReady(event));
    for (const { opsUrl } of servers) {
      expect((await fetch(`${opsUrl}/readyz`)).status).toBe(200);
      expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
      expect(await (await fetch(`${opsUrl}/metrics`)).text()).toContain('plumbline_outbox_unpublished_records');
    }
    expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0, 0, 0]);
  });

  test('has listeners only where they are needed, and serves nothing but its own function', async () => {
    const [api, watch, publish] = await start('api', 'watch', 'publish');
    expect(publish.publicUrl).toBe('');
    await expect(watchAt(api)).rejects.toThrow('404');
    expect(await create(watch.publicUrl, TENANTS, 'nowhere')).toBe(404);
    await Promise.all([api, watch, publish].map((server) => server.stop()));
  });
});

describe('SIGTERM', () => {
  test('makes a server unready first, while it still answers and streams', async () => {
    const server = await startServer('api,watch,publish', { ...env, STOP_DELAY_SECONDS: '600' });
    const stream = await watchAt(server);
    await stream.next();
    server.process.kill('SIGTERM');
    await untilUnready(server);
    expect((await fetch(`${server.opsUrl}/healthz`)).status).toBe(200);
    expect(await create(server.publicUrl, TENANTS, 'late')).toBe(201);
    await stream.waitFor(isAbout('late'));
    server.process.kill('SIGKILL');
    await server.process.exit;
  });

  test('ends streams with their cursor: another process goes on with the next event', async () => {
    const [api, watch, publish] = await start('api', 'watch', 'publish');
    const stream = await watchAt(watch);
    await stream.next();
    await create(api.publicUrl, TENANTS, 'before');
    await stream.waitFor(isAbout('before'));
    expect(await watch.stop()).toBe(0);
    expect(await stream.ended).toBeUndefined();
    await create(api.publicUrl, TENANTS, 'between');
    const another = await startServer('watch', env);
    const resumed = await watchAt(another, stream.lastEventId);
    expect((await resumed.next()).event).toBe('READY');
    expect((await resumed.next()).data.subject).toBe('plumbline.dev/Tenant/between');
    await resumed.close();
    await Promise.all([api, another, publish].map((server) => server.stop()));
  });

  test('lets a pass that runs finish and tell what it did', async () => {
    const [api, reconcile] = await start('api', 'reconcile');
    await create(api.publicUrl, TENANTS, 'passes');
    const asked = gate.next();
    expect(await create(api.publicUrl, 'example.dev/v1/namespaces/passes/gateds', 'one')).toBe(201);
    const answer = await asked;
    reconcile.process.kill('SIGTERM');
    await untilUnready(reconcile);
    answer.end();
    expect((await reconcile.process.exit).code).toBe(0);
    const [row] = await withSession(
      database.url,
      { applicationName: 'test' },
      (sql) => sql<{ phase: unknown }[]>`
        select jsonb_path_query_first(status, '$.conditions[*] ? (@.type == "Ready").status') as phase
        from plumbline.resource where name = 'one'`,
    );
    expect(row?.phase).toBe('True');
    await api.stop();
  });
});

describe('a server that cannot work does not start, and says why', () => {
  const serve = (role: string, more: Record<string, string> = {}) =>
    runProgram('main', ['--role', role], { ...env, ...more });

  test('a role that there is not', async () => {
    expect(await serve('api,wach')).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^--role has "wach"; allowed: api, watch, publish, reconcile\nusage: /),
    });
    expect((await runProgram('main', [], env)).errors).toMatch(/^--role is missing\nusage: /);
  });

  test('neither database nor issuer: both are told, and no key is made', async () => {
    const { code, errors } = await serve('watch', { DATABASE_URL: '', TOKEN_ISSUER: '', TOKEN_JWKS_URL: '' });
    expect([code, errors]).toEqual([
      1,
      'DATABASE_URL is not set; it names the database: postgres://…\n' +
        'TOKEN_ISSUER and TOKEN_JWKS_URL are not set; they name who issues the tokens that callers bring, and where its ' +
        'keys are. Only npm start makes a key of its own\n',
    ]);
  });

  test('what takes no tokens needs no issuer', async () => {
    const server = await startServer('publish,reconcile', { ...env, TOKEN_ISSUER: '', TOKEN_JWKS_URL: '' });
    expect(await server.stop()).toBe(0);
  });

  test('a database that was not set up, or by an older version', async () => {
    const empty = await createTestDatabase({ migrated: false });
    const own = await createServerLogin(empty.url);
    expect((await serve('publish', { DATABASE_URL: own })).errors).toMatch(
      /^the database lacks \d+ migrations of this program; run npm run migrate\n$/,
    );
    await empty.drop();
  });

  test('a kind that the database does not know as it is', async () => {
    const { code, errors } = await serve('api', { KINDS: './test/http/kinds.ts' });
    expect([code, errors]).toEqual([
      1,
      expect.stringMatching(
        /^the database does not know example.dev\/Widget, .* as this program does; run npm run set-up of this program, with the same KINDS\n$/,
      ),
    ]);
  });

  test('a database that is away', async () => {
    const { errors } = await serve('publish', { DATABASE_URL: 'postgres://nobody:secret@127.0.0.1:1/none' });
    expect(errors).toMatch(/^the database postgres:\/\/nobody:\*\*\*@127.0.0.1:1\/none cannot be used: /);
  });
});

async function untilUnready({ opsUrl }: ServerProcess): Promise<void> {
  for (;;) {
    const response = await fetch(`${opsUrl}/readyz?exclude=publishing`);
    const { checks } = (await response.json()) as { checks: { name: string; status: string }[] };
    if (response.status === 503) {
      expect(checks.find(({ name }) => name === 'stopping')?.status).toBe('not ready');
      return;
    }
  }
}

interface Gate {
  readonly url: string;
  /** The next pass that asks; it waits for the end of the answer. */
  next(): Promise<ServerResponse>;
  close(): void;
}

async function openGate(): Promise<Gate> {
  let arrive: ((response: ServerResponse) => void) | undefined;
  const server: Server = createServer((_request, response) => (arrive ? arrive(response) : response.end()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: () =>
      new Promise((resolve) => {
        arrive = resolve;
      }),
    close: () => void server.close(),
  };
}
