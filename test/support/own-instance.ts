/** An instance and a database of the test file's own, from when they are first asked for until its end. */

import { afterAll, beforeAll } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

export interface OwnInstance {
  /** The same one each time. */
  open(): Promise<LocalInstance>;
  /** As the superuser of its database; there for the tests and their hooks. */
  readonly sql: Sql;
}

/** @param env of the instance; asked for when it starts. */
export function useOwnInstance(env: () => Promise<Readonly<Record<string, string>>> = async () => ({})): OwnInstance {
  let database: Promise<TestDatabase> | undefined;
  let starting: Promise<LocalInstance> | undefined;
  let sql: Sql | undefined;
  beforeAll(async () => {
    await open();
    sql = connect((await database)?.url ?? '', { applicationName: 'test' });
  });
  afterAll(async () => {
    await sql?.end();
    await (await starting)?.stop();
    await (await database)?.drop();
  });
  return {
    open,
    get sql() {
      if (!sql) throw new Error('the instance has not been started');
      return sql;
    },
  };

  async function open(): Promise<LocalInstance> {
    database ??= createTestDatabase();
    const { url } = await database;
    return (starting ??= env().then((variables) => startLocalInstance({ databaseUrl: url, env: variables })));
  }
}
