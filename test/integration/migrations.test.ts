import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { assertSchemaIsCurrent, migrate, SchemaMismatch } from '#adapters/postgres/migrate.ts';
import { startChild } from '#test/support/child.ts';
import { startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { openConnection } from '#test/support/prepared-database.ts';

let database: TestDatabase;
let sql: Sql;

async function open(options: { readonly migrated: boolean }): Promise<void> {
  database = await createTestDatabase(options);
  sql = openConnection(database.url);
}

afterEach(async () => {
  await sql.end();
  await database.drop();
});

describe('an empty database', () => {
  beforeEach(() => open({ migrated: false }));

  test('is migrated by several processes at once, each file by one of them', async () => {
    const children = Array.from({ length: 3 }, () =>
      startChild('infra/local/migrate.ts', [], { env: { DATABASE_URL: database.url } }),
    );
    const exits = await Promise.all(children.map((child) => child.exit));
    expect(exits.map(({ code, errors }) => ({ code, errors }))).toEqual(exits.map(() => ({ code: 0, errors: '' })));
    const files = (await readdir('sql')).filter((name) => !name.startsWith('0000')).toSorted();
    const applied = await sql<{ name: string }[]>`select name from plumbline.migration order by version`;
    expect(applied.map((row) => row.name)).toEqual(files);
    await assertSchemaIsCurrent(database.url);
  });

  test('is not current, and the message says what to do', async () => {
    await expect(assertSchemaIsCurrent(database.url)).rejects.toThrow(/lacks \d+ migrations .* run npm run migrate/);
  });
});

describe('a migrated database', () => {
  beforeEach(() => open({ migrated: true }));

  test('is current, and migrating it again changes nothing', async () => {
    const ledger = (): Promise<unknown> => sql`select * from plumbline.migration order by version`;
    const before = await ledger();
    await migrate(database.url);
    await assertSchemaIsCurrent(database.url);
    expect(await ledger()).toEqual(before);
  });

  test('that lacks a migration gets it', async () => {
    await sql.unsafe('drop table plumbline.cursor_key; delete from plumbline.migration where version = 6');
    await expect(assertSchemaIsCurrent(database.url)).rejects.toThrow('lacks 1 migration');
    await migrate(database.url);
    await assertSchemaIsCurrent(database.url);
    expect((await sql`select * from plumbline.cursor_key`).length).toBe(0);
  });

  test('whose migration was another text is refused by name, before anything is changed', async () => {
    await sql`update plumbline.migration set checksum = 'other' where version = 3`;
    for (const check of [migrate, assertSchemaIsCurrent]) {
      const error = await check(database.url).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SchemaMismatch);
      expect(String(error)).toMatch(/sql\/0003_resource\.sql differs .* never edited.*restore the file/);
    }
  });

  test('that a newer program has changed is refused, with the advice to start that one', async () => {
    await sql`insert into plumbline.migration (version, name, checksum) values (9999, '9999_future.sql', 'x')`;
    for (const check of [migrate, assertSchemaIsCurrent]) {
      await expect(check(database.url)).rejects.toThrow(/9999_future\.sql.*newer.*Start the newer program/);
    }
  });

  test('of a newer program keeps a server from starting, in one line', async () => {
    await sql`insert into plumbline.migration (version, name, checksum) values (9999, '9999_future.sql', 'x')`;
    const error = await startLocalInstance({ databaseUrl: database.url }).catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/ended with code 1 before it was ready: .*9999_future\.sql/);
    expect(String(error)).not.toContain('    at ');
  });
});
