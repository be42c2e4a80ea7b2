import { afterAll, beforeAll, expect, test, describe } from 'vitest';
import { connect, serving, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '#test/support/pgbouncer.ts';
import { prepareDatabase, type PreparedDatabase } from '#test/support/prepared-database.ts';

describe.skipIf(noPgBouncer)('statements of a scope through PgBouncer in transaction mode', () => {
  let database: PreparedDatabase;
  let pooler: PgBouncer;
  let sql: Sql;
  beforeAll(async () => {
    database = await prepareDatabase(['acme']);
    pooler = await startPgBouncer(database.url);
    sql = connect(pooler.url, { applicationName: 'test', pooler: 'any' });
  });
  afterAll(async () => {
    await sql?.end();
    await pooler?.stop();
    await database?.close();
  });

  test('have their scope and no other, however many share how few sessions', async () => {
    const one = async (n: number): Promise<unknown> => {
      const rows = await scoped(sql, { tenants: [`t${n}`] })`
        select current_user::text as role, current_setting('plumbline.tenants', true) as tenants, ${n}::int4 as n`;
      return rows[0];
    };
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => one(n)));
      expect(answers).toEqual(
        Array.from({ length: 20 }, (_, n) => ({ role: 'plumbline_server', tenants: `{"t${n}"}`, n })),
      );
    }
  });

  test('of who serves callers see nothing without one, though the login sees all', async () => {
    const served = connect(pooler.url, { applicationName: 'test', pooler: 'any', role: 'plumbline_server' });
    for (const pool of [served, serving(sql)]) {
      expect(await pool`select current_user::text as role`).toEqual([{ role: 'plumbline_server' }]);
      expect(await pool`select tenant from plumbline.stream where tenant = 'acme'`).toEqual([]);
      expect(
        await scoped(pool, { tenants: '*' })`select tenant from plumbline.stream where tenant = 'acme'`,
      ).toHaveLength(1);
    }
    expect(await sql`select tenant from plumbline.stream where tenant = 'acme'`).toHaveLength(1);
    await served.end();
  });

  test('that are refused leave nothing to the next one', async () => {
    const scopedSql = scoped(sql, { tenants: ['t'] });
    for (let round = 0; round < 20; round += 1) {
      await expect(scopedSql`select 1 / ${0}::int4`).rejects.toThrow('division by zero');
      expect(await sql`select current_user::text as role, ${round}::int4 as n`).toEqual([
        { role: 'plumbline_worker', n: round },
      ]);
    }
  });
});
