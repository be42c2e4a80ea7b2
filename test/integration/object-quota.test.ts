import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
  ({ sql } = database);
});

afterAll(() => database.close());

test('a tenant at its limit of a kind gets no more of it, and the refusal says the limit, what is used and what to do', async () => {
  await limit('acme', 2);
  await insert('acme', ['one', 'two']);
  const refusal = await refusalOf(insert('acme', ['three']));
  expect(refusal).toMatchObject({
    code: 'PL403',
    message:
      'exceeded quota: objects, requested: count/widgets.example.dev=1, used: count/widgets.example.dev=2, limited: count/widgets.example.dev=2',
  });
  expect(await count('acme')).toBe(2);
});

test('one statement that would pass the limit puts in nothing', async () => {
  await limit('globex', 3);
  expect((await refusalOf(insert('globex', ['a', 'b', 'c', 'd']))).code).toBe('PL403');
  expect(await count('globex')).toBe(0);
  await insert('globex', ['a', 'b', 'c']);
});

describe('at the limit', () => {
  beforeAll(async () => {
    await limit('acme', 1);
    await sql`delete from plumbline.resource where tenant = 'acme'`;
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
      values ('acme', 'example.dev', 'Widget', 'last', '{example.dev/hold}')`;
    // Below what there is, too.
    await limit('acme', 0);
  });

  test('objects are changed, marked for deletion, and lose their finalizers; then one of the room is free', async () => {
    const change = (what: string): Promise<unknown> =>
      sql.unsafe(`update plumbline.resource set ${what} where tenant = 'acme' and name = 'last'`);
    await change(`spec = '{"size": 2}'`);
    await change(`status = '{"phase": "Odd"}'`);
    await change('deletion_timestamp = now()');
    await change(`finalizers = '{}'`);
    expect(await count('acme')).toBe(0);
    await limit('acme', 1);
    await insert('acme', ['next']);
  });
});

test('many that create at once never get one more than the limit, nor one less', async () => {
  await sql`delete from plumbline.resource where tenant = 'acme'`;
  await limit('acme', 10);
  const outcomes = await Promise.allSettled(Array.from({ length: 40 }, (_, n) => insert('acme', [`w${n}`])));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
  expect(await count('acme')).toBe(10);
});

test('nor do those that create the first ones of a kind', async () => {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values ('system', 'plumbline.dev', 'Tenant', 'fresh', '{"quota": {"objects": 3}}')`;
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => insert('fresh', [`w${n}`])));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  expect(await count('fresh')).toBe(3);
});

test('nor do those whose transactions are many statements, from far below the limit up to it', async () => {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values ('system', 'plumbline.dev', 'Tenant', 'large', '{"quota": {"objects": 4000}}')`;
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'large', 'example.dev', 'Widget', 'first-' || n from generate_series(1, 900) n`;
  const codes = new Set<string | undefined>();
  await Promise.all(
    Array.from({ length: 12 }, async (_, writer) => {
      const connection = database.connection();
      for (let round = 0; round < 30; round += 1) {
        await connection`begin`;
        try {
          for (let part = 0; part < 3; part += 1) {
            await connection`insert into plumbline.resource (tenant, api_group, kind, name)
              select 'large', 'example.dev', 'Widget', ${`w${writer}-${round}-${part}-`} || n from generate_series(1, 12) n`;
          }
          await connection`commit`;
        } catch (error) {
          codes.add((error as { code?: string }).code);
          await connection`rollback`;
        }
      }
    }),
  );
  expect([...codes]).toEqual(['PL403']);
  expect(await count('large')).toBeLessThanOrEqual(4000);
  expect(await count('large')).toBeGreaterThan(4000 - 36);
});

test('nor does a transaction that has its constraints checked at once, and goes on', async () => {
  await limit('acme', 100);
  const connection = database.connection();
  await connection`begin`;
  await connection`set constraints all immediate`;
  await connection`insert into plumbline.resource (tenant, api_group, kind, name)
    values ('acme', 'example.dev', 'Widget', 'checked')`;
  const refusal = await refusalOf(connection`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'acme', 'example.dev', 'Widget', 'unchecked-' || n from generate_series(1, 100) n`);
  expect(refusal.code).toBe('PL403');
  await connection`rollback`;
});

test('nor can one be created at an isolation level that does not see what others create', async () => {
  await limit('acme', 100);
  for (const level of ['repeatable read', 'serializable']) {
    const connection = database.connection();
    await connection.unsafe(`begin isolation level ${level}`);
    await connection`insert into plumbline.resource (tenant, api_group, kind, name)
      values ('acme', 'example.dev', 'Widget', 'late')`;
    expect(await refusalOf(connection.unsafe('commit'))).toMatchObject({
      code: '0A000',
      message: 'objects of tenant "acme" have a limit, and can be created at READ COMMITTED only',
    });
  }
});

test('nobody waits for a transaction that stays open, be it the first of its kind, one of many objects, or one that deletes', async () => {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values ('system', 'plumbline.dev', 'Tenant', 'calm', '{"quota": {"objects": 50}}')`;
  const opened: Sql[] = [];
  for (const work of [
    `insert into plumbline.resource (tenant, api_group, kind, name)
      select 'calm', 'example.dev', 'Widget', 'many-' || n from generate_series(1, 40) n`,
    `insert into plumbline.resource (tenant, api_group, kind, name) values ('calm', 'example.dev', 'Widget', 'one')`,
    `delete from plumbline.resource where tenant = 'calm' and name = 'there'`,
  ]) {
    const connection = database.connection();
    opened.push(connection);
    await connection.unsafe(`begin; set local lock_timeout = '2s'`);
    await connection.unsafe(work);
    await sql.unsafe(`begin; set local lock_timeout = '2s'; insert into plumbline.resource (tenant, api_group, kind, name)
      values ('calm', 'example.dev', 'Widget', 'beside-${opened.length}'); commit`);
    if (opened.length === 2) await insert('calm', ['there']);
  }
  for (const connection of opened) await connection.unsafe('commit');
  expect(await count('calm')).toBe(44);
  expect((await refusalOf(insert('calm', ['a', 'b', 'c', 'd', 'e', 'f', 'g']))).code).toBe('PL403');
});

test('creations and deletions at once, some rolled back, leave the count at what there is', async () => {
  await sql`delete from plumbline.resource where tenant = 'acme'`;
  await limit('acme', 10);
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      const connection = database.connection();
      for (let round = 0; round < 12; round += 1) {
        await connection`begin`;
        const name = `w${writer}-${round % 3}`;
        try {
          await connection`insert into plumbline.resource (tenant, api_group, kind, name)
            values ('acme', 'example.dev', 'Widget', ${name})`;
          if (round % 2 === 0)
            await connection`delete from plumbline.resource where name = ${`w${writer}-${(round + 1) % 3}`}`;
          await connection.unsafe(round % 5 === 0 ? 'rollback' : 'commit');
        } catch {
          await connection`rollback`;
        }
        expect(await count('acme')).toBeLessThanOrEqual(10);
      }
    }),
  );
  const [row] = await sql<{ used: bigint }[]>`select sum(used)::bigint as used from plumbline.object_count
    where tenant = 'acme' and kind = 'Widget'`;
  expect(Number(row?.used)).toBe(await count('acme'));
});

test('who creates in one tenant waits for nobody who creates in another', async () => {
  await limit('acme', 100);
  await limit('globex', 100);
  const open = database.connection();
  await open`begin`;
  await open`insert into plumbline.resource (tenant, api_group, kind, name) values ('acme', 'example.dev', 'Widget', 'held')`;
  await sql.unsafe(
    `begin; set local lock_timeout = '2s'; insert into plumbline.resource (tenant, api_group, kind, name)
      values ('globex', 'example.dev', 'Widget', 'free'); commit`,
  );
  await open`rollback`;
});

test('without a limit of its own a tenant has the default; without one it has any number', async () => {
  await sql`update plumbline.resource set spec = '{}' where kind = 'Tenant' and name = 'globex'`;
  await sql`update plumbline.quota_default set objects = 5`;
  await sql`delete from plumbline.resource where tenant = 'globex'`;
  expect((await refusalOf(insert('globex', ['a', 'b', 'c', 'd', 'e', 'f']))).code).toBe('PL403');
  await sql`update plumbline.quota_default set objects = null`;
  await insert('globex', ['a', 'b', 'c', 'd', 'e', 'f']);
});

test('a count goes with its tenant', async () => {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name) values ('system', 'plumbline.dev', 'Tenant', 'brief')`;
  await insert('brief', ['one']);
  await sql`delete from plumbline.resource where tenant = 'brief'`;
  await sql`delete from plumbline.resource where kind = 'Tenant' and name = 'brief'`;
  expect(await sql`select * from plumbline.object_count where tenant = 'brief'`).toHaveLength(0);
});

async function limit(tenant: string, objects: number): Promise<void> {
  await sql`update plumbline.resource set spec = jsonb_build_object('quota', jsonb_build_object('objects', ${objects}::int))
    where kind = 'Tenant' and name = ${tenant}`;
}

async function insert(tenant: string, names: readonly string[]): Promise<unknown> {
  return sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select ${tenant}, 'example.dev', 'Widget', name from unnest(${[...names]}::text[]) name`;
}

async function count(tenant: string): Promise<number> {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from plumbline.resource
    where tenant = ${tenant} and kind = 'Widget'`;
  return row?.n ?? 0;
}
