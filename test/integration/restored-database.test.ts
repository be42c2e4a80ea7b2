import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { makeTenant } from '#test/fault/tenant.ts';
import { clientOf } from '#test/http/client.ts';
import { expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { startChild } from '#test/support/child.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { copyDatabase, createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { openSse, SseRefused } from '#test/support/sse-client.ts';

const ADMIN = { roles: ['admin'], tenants: '*' } as const;

let original: TestDatabase;
let restored: TestDatabase | undefined;
let dataDir: string;
let instance: LocalInstance;
let tenant: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'plumbline-restored-'));
  original = await createTestDatabase();
  instance = await startLocalInstance({ databaseUrl: original.url, dataDir });
  ({ tenant } = await makeTenant(instance));
});

afterAll(async () => {
  await instance.stop();
  await original.drop();
  await restored?.drop();
  await rm(dataDir, { recursive: true });
});

test('a cursor from behind a backup is refused once the backup is in use, also when that has gone further than it', async () => {
  await write('first', 2);
  await instance.stop();
  restored = await copyDatabase(original.url);
  instance = await startLocalInstance({ databaseUrl: original.url, dataDir });
  await write('lost', 2);
  const cursor = await listCursor();
  await instance.stop();
  instance = await startLocalInstance({ databaseUrl: restored.url, dataDir });
  await write('other', 5);
  expectFailure(await refusalOf(cursor), 410, 'CursorKeyRetired', 'list again');
  const client = await openSse(watchUrl(instance.baseUrl, { tenants: tenant, from: await listCursor() }), {
    token: await instance.token(ADMIN),
  });
  expect((await client.next()).data.mode).toBe('resume');
  await client.close();
});

test('where a restore cannot be seen, an operator renews the keys: then every cursor from before is refused', async () => {
  const cursor = await listCursor();
  const child = startChild('infra/local/cursor-keys.ts', ['renew'], { env: { DATABASE_URL: restored?.url ?? '' } });
  expect(await child.nextLine()).toMatch(/^key \d+ seals, and is the only one/);
  expect((await child.exit).code).toBe(0);
  await vi.waitFor(async () => expectFailure(await refusalOf(cursor), 410, 'CursorKeyRetired'), {
    timeout: 10_000,
    interval: 100,
  });
});

async function write(prefix: string, count: number): Promise<void> {
  const client = await clientOf(instance, ADMIN);
  for (let index = 0; index < count; index++) {
    const answer = await client.post(widgets(), { metadata: { name: `${prefix}-${index}` } });
    expect(answer.status, answer.text).toBe(201);
  }
}

async function listCursor(): Promise<string> {
  return (await (await clientOf(instance, ADMIN)).get(widgets())).body.metadata.cursor;
}

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
async function refusalOf(from: string): Promise<any> {
  const token = await instance.token(ADMIN);
  const client = await openSse(watchUrl(instance.baseUrl, { tenants: tenant, from }), { token }).catch(
    (error: unknown) => error,
  );
  if (client instanceof SseRefused) return client.body;
  await (client as Awaited<ReturnType<typeof openSse>>).close();
  throw new Error('the watch was not refused');
}

function widgets(): string {
  return `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
}
