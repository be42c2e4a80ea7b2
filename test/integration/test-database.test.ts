import { describe, expect, inject, test } from 'vitest';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { query } from '#test/support/embedded.ts';

describe('createTestDatabase()', () => {
  test('gives databases that are migrated and apart, however many are asked for at once', async () => {
    const [first, second, ...others] = await Promise.all(Array.from({ length: 4 }, createTestDatabase));
    if (!first || !second) throw new Error('four were asked for');
    await query(first.url, 'create table only_here ()');
    await expect(query(second.url, 'select from only_here')).rejects.toMatchObject({ code: '42P01' });
    const [count] = await query(second.url, 'select count(*)::int as migrations from plumbline.migration');
    expect(count?.['migrations']).toBeGreaterThan(0);
    await Promise.all([first, second, ...others].map((database) => database.drop()));
  });

  test('drops a database that still has sessions', async () => {
    const database = await createTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    const session = query(database.url, 'select pg_sleep(600)').catch((error: unknown) => error);
    await database.drop();
    expect(await session).toBeInstanceOf(Error);
    expect(await query(inject('postgresAdminUrl'), `select from pg_database where datname = '${name}'`)).toEqual([]);
  });
});
