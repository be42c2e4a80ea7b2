import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import { openConnection, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme']);
  ({ sql } = database);
});

afterAll(() => database.close());

test('the tenant "shared" is made once, with an event, when kinds are registered, by as many servers as may start', async () => {
  await Promise.all([1, 2, 3].map(() => registerKinds(database.url, SHIPPED_KINDS)));
  const objects = await sql`select tenant from plumbline.resource where kind = 'Tenant' and name = 'shared'`;
  expect(objects).toEqual([{ tenant: 'system' }]);
  expect(await sql`select type from plumbline.outbox where kind = 'Tenant' and name = 'shared'`).toEqual([
    { type: 'ADDED' },
  ]);
  expect(await sql`select closed_at from plumbline.stream where tenant = 'shared'`).toEqual([{ closed_at: null }]);
});

test.each([
  ['deleted', `delete from plumbline.resource where kind = 'Tenant' and name = 'shared'`],
  ['marked', `update plumbline.resource set deletion_timestamp = now() where kind = 'Tenant' and name = 'shared'`],
  ['deleted among others', `delete from plumbline.resource where kind = 'Tenant'`],
])('it cannot be %s, by raw SQL either', async (_, statement) => {
  expect(await refusalOf(sql.unsafe(statement))).toEqual({
    code: 'PL403',
    field: 'metadata.name',
    message: 'tenant "shared" is built in and cannot be deleted',
  });
});

test.each(['shared', 'system'])('the stream of %s stays open, whoever would close it', async (tenant) => {
  for (const statement of [
    'update plumbline.stream set closing_at = now() where tenant = $1',
    'update plumbline.stream set closed_at = now() where tenant = $1',
    `update plumbline.stream set tenant = 'other' where tenant = $1`,
    'delete from plumbline.stream where tenant = $1',
  ]) {
    const refusal = await refusalOf(sql.unsafe(statement, [tenant]));
    expect([refusal.code, refusal.message]).toEqual(['PL403', `tenant "${tenant}" is built in and cannot be deleted`]);
  }
});

test('what else there is of it can be written: labels, and settings', async () => {
  const written = await sql`update plumbline.resource set labels = '{"a":"b"}', spec = '{"displayName":"For all"}'
    where kind = 'Tenant' and name = 'shared' returning name`;
  expect(written).toHaveLength(1);
});

test('a database that has a tenant of that name already is not opened to everybody behind its back', async () => {
  const older = await createTestDatabase();
  const connection = openConnection(older.url);
  try {
    // As the migration before left it, with a tenant that somebody has made.
    await connection.unsafe(`
      delete from plumbline.migration where version = 11;
      insert into plumbline.stream (tenant) values ('shared')`);
    await expect(migrate(older.url)).rejects.toThrow(/0011.*there is a tenant "shared" already/s);
  } finally {
    await connection.end();
    await older.drop();
  }
});
