import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '#adapters/postgres/client.ts';
import { startChild } from '#test/support/child.ts';
import { poolerOfRun } from '#test/support/pooler-of-run.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const run = poolerOfRun();

describe.skipIf(!run)('in a run with a pooler', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  const loginsIn = async (): Promise<readonly string[]> => {
    const sql = connect(database.url, { applicationName: 'test', settings: {} });
    const rows = await sql<{ name: string }[]>`
      select distinct usename::text as name from pg_stat_activity where datname = current_database()`;
    await sql.end();
    return rows.map(({ name }) => name);
  };

  test('what a test opens goes through it', async () => {
    const sql = connect(database.url, { applicationName: 'test', role: 'plumbline_worker' });
    expect(await sql`select session_user::text as login, current_user::text as role`).toEqual([
      { login: run?.login.name, role: 'plumbline_worker' },
    ]);
    await sql.end();
  });

  test('what a program opens that a test starts does too', async () => {
    expect(await loginsIn()).not.toContain(run?.login.name);
    const child = startChild('test/support/publisher-process.ts', [database.url, 'commanded']);
    expect(await child.nextLine()).toBe('ready');
    child.send('publish');
    expect(await child.nextLine()).toBe('0');
    expect(await loginsIn()).toContain(run?.login.name);
    child.end();
    await child.exit;
  });
});
