import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { type RegisteredKind, registerKinds } from '#adapters/postgres/kinds.ts';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { assertServable, NEWEST_MIGRATION } from '#adapters/postgres/servable.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const PASSWORD = 'a good one';
let database: TestDatabase;
let admin: Sql;
let name: string;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = connect(database.url, { applicationName: 'test' });
  name = `${new URL(database.url).pathname.slice(1)}_served`;
  await withSession(database.url, { applicationName: 'test' }, (sql) =>
    makePooledLogin(sql, { name, password: PASSWORD }),
  );
});
afterAll(async () => {
  await admin.end();
  await database.drop();
});

/** As a worker asks, over a connection of its own. */
async function ask(
  changes: Partial<Pick<URL, 'username' | 'password' | 'pathname'>> = {},
  kinds: readonly RegisteredKind[] = [],
): Promise<string> {
  const url = Object.assign(new URL(database.url), { username: name, password: PASSWORD, ...changes });
  const sql = connect(url.href, { applicationName: 'test', pooler: 'any' });
  try {
    await assertServable(sql, kinds);
    return 'servable';
  } catch (error) {
    expect(error).toMatchObject({ name: 'StatusError', reason: 'ServiceUnavailable' });
    return String(error);
  } finally {
    await sql.end();
  }
}

test('the newest file of sql/ is the one that hosts without files know', async () => {
  expect((await readdir('sql')).toSorted().at(-1)).toBe(NEWEST_MIGRATION);
});

test('a database that was set up is servable, by the login of servers', async () => {
  expect(await ask()).toBe('servable');
});

test('a schema of another version is refused, with what to do', async () => {
  await admin`insert into plumbline.migration (version, name, checksum) values (9999, '9999_later.sql', 'x')`;
  expect(await ask()).toMatch(/schema of a newer version, up to 9999_later.sql: deploy that version/);
  await admin`delete from plumbline.migration where version >= ${Number(NEWEST_MIGRATION.slice(0, 4))}`;
  expect(await ask()).toMatch(/schema of an older version, up to \d{4}_\w+\.sql: npm run set-up/);
  await admin`insert into plumbline.migration (version, name, checksum)
    values (${Number(NEWEST_MIGRATION.slice(0, 4))}, ${NEWEST_MIGRATION}, 'x')`;
});

test('a database without a schema is refused, with what to do', async () => {
  expect(await ask({ pathname: '/postgres' })).toMatch(/login of this server is not set up|has no schema/);
  await admin`alter table plumbline.migration rename to migration_away`;
  expect(await ask()).toMatch(/has no schema: npm run set-up makes it/);
  await admin`alter table plumbline.migration_away rename to migration`;
});

test('of a login that acts as another role only the log is told what is wrong', async () => {
  const { username, password } = new URL(database.url);
  const said = await ask({ username, password });
  expect(said).toMatch(/login of this server is not set up; its log says/);
  expect(said).not.toContain(username);
});

test('a kind that was not registered, or otherwise, is refused by its name', async () => {
  const kind: RegisteredKind = {
    group: 'example.dev',
    version: 'v1',
    kind: 'Comet',
    plural: 'comets',
    scope: 'Namespaced',
    redact: ['spec.password'],
    finalizers: [],
    controllers: [],
    controllersElsewhere: [],
  };
  expect(await ask({}, [kind])).toMatch(/does not know example\.dev\/Comet as this program does; run npm run set-up/);
  await registerKinds(database.url, [{ ...kind, redact: [] }]);
  expect(await ask({}, [kind])).toMatch(/does not know example\.dev\/Comet/);
  await registerKinds(database.url, [kind]);
  expect(await ask({}, [kind])).toBe('servable');
});

test('a wrong password and a database that is not there are something that passes', async () => {
  expect(await ask({ password: 'another' })).toMatch(/the database is not available/);
  expect(await ask({ pathname: '/nowhere' })).toMatch(/the database is not available/);
});
