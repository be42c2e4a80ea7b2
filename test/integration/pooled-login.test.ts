import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { assertServerRole, makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

let database: TestDatabase;
let url: URL;
let name: string;

beforeAll(async () => {
  database = await createTestDatabase();
  url = new URL(database.url);
  name = `${url.pathname.slice(1)}_pooled`;
});
afterAll(async () => {
  await database.drop();
});

async function asLogin<T>(password: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const own = Object.assign(new URL(url), { username: name, password });
  const sql = connect(own.href, { applicationName: 'test', pooler: 'any' });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

const make = (password: string): Promise<void> =>
  withSession(database.url, { applicationName: 'test' }, (sql) => makePooledLogin(sql, { name, password }));

test('the login acts as workers do without asking, and as servers do for a scope; made again, it has a new password', async () => {
  await make("it's one");
  await make('another');
  await asLogin('another', async (sql) => {
    await assertServerRole(sql);
    const whoAmI = async (asked: Sql): Promise<unknown> =>
      (await asked`select current_user::text as role, current_setting('statement_timeout') as timeout`)[0];
    expect(await whoAmI(sql)).toEqual({ role: 'plumbline_worker', timeout: '15s' });
    expect(await whoAmI(scoped(sql, { tenants: ['acme'] }))).toEqual({ role: 'plumbline_server', timeout: '15s' });
    expect(await whoAmI(sql)).toEqual({ role: 'plumbline_worker', timeout: '15s' });
  });
  await expect(asLogin("it's one", (sql) => sql`select 1`)).rejects.toThrow('password');
});

test('a login that acts as something else is refused, with what to do', async () => {
  const sql = connect(database.url, { applicationName: 'test', pooler: 'any' });
  await expect(assertServerRole(sql)).rejects.toThrow(/acts as .* alter role .* set role = plumbline_worker/);
  await sql.end();
});

test('a pool that is told of notifications elsewhere listens there', async () => {
  const heard: string[] = [];
  const listen = ((channel: string) => {
    heard.push(channel);
    return Promise.resolve({ unlisten: async () => undefined });
  }) as unknown as Sql['listen'];
  const sql = connect(database.url, { applicationName: 'test', listen });
  await sql.listen('plumbline_stream', () => undefined);
  expect(heard).toEqual(['plumbline_stream']);
  await sql.end();
});
