import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

let database: PreparedDatabase;
let server: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme']);
  server = connect(database.url, { applicationName: 'test server', maxConnections: 2, role: 'plumbline_server' });
});

afterAll(async () => {
  await server.end({ timeout: 1 });
  await database.close();
});

describe('functions that act as their owner', () => {
  test('look for every name in pg_catalog first, and for nothing of the caller', async () => {
    const rows = await database.sql<{ name: string; config: readonly string[] | null }[]>`
      select proname::text as name, to_jsonb(proconfig) as config from pg_proc
      where pronamespace = 'plumbline'::regnamespace and prosecdef`;
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.filter(({ config }) => !config?.includes('search_path=pg_catalog, pg_temp'))).toEqual([]);
  });

  test('take no type of a temporary schema for their own', async () => {
    const session = database.connection();
    await session`set role plumbline_worker`;
    await session`create function pg_temp.intrude(d pg_catalog.date) returns boolean language plpgsql as $$
      begin execute 'alter table plumbline.resource disable trigger zz_capture_update'; return true; end $$`;
    await session`create domain pg_temp.date as pg_catalog.date check (pg_temp.intrude(value))`;
    await session`select plumbline.ensure_event_log_partitions(1)`;
    expect(await session`select * from plumbline.uncaptured_tables()`).toHaveLength(0);
  });

  test('are not for everyone', async () => {
    const [row] = await database.sql<{ open: number }[]>`
      select count(*)::int as open from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
      where pronamespace = 'plumbline'::regnamespace and a.grantee = 0 and a.privilege_type = 'EXECUTE'`;
    expect(row?.open).toBe(0);
  });
});

describe('the serving role', () => {
  test.each([
    ['switch capture off', 'alter table plumbline.resource disable trigger zz_capture_update'],
    ['change the outbox', 'delete from plumbline.outbox'],
    ['change the log', 'update plumbline.event_log set name = name'],
    ['let a held stream go on', 'select plumbline.quarantine_retry(1)'],
    ['redefine a kind', "update plumbline.kind set redact = '{}'"],
    ['block a token', "insert into plumbline.token_block (subject, reason) values ('ann', 'none')"],
    ['let a blocked token in', 'delete from plumbline.token_block'],
    ['empty the objects', 'truncate plumbline.resource'],
    ['publish', 'select plumbline.pending_streams()'],
    ['collect', 'select plumbline.collect(1)'],
    ['act for controllers', "select plumbline.claim_passes('{a/b}', 'me', interval '1 minute', 1, '')"],
    ['close the stream of a tenant', "select plumbline.close_stream('acme')"],
  ])('cannot %s', async (_, statement) => {
    expect((await refusalOf(server.unsafe(statement))).code).toBe('42501');
  });
});

describe('what an older snapshot would get wrong', () => {
  test.each(['repeatable read', 'serializable'])('is refused: a tenant deleted in a %s transaction', async (level) => {
    const session = database.connection();
    await session.unsafe(`begin isolation level ${level}`);
    const refusal = await refusalOf(session`delete from plumbline.resource where kind = 'Tenant' and name = 'acme'`);
    await session`rollback`;
    expect(refusal.code).toBe('PL409');
  });
});

describe('labels and annotations by SQL', () => {
  test.each(['labels', 'annotations'])('are texts: other %s are refused', async (column) => {
    const insert = `insert into plumbline.resource (tenant, api_group, kind, name, ${column})
      values ('acme', 'example.dev', 'Widget', 'typed', '{"a": 1}')`;
    expect(await refusalOf(database.sql.unsafe(insert))).toMatchObject({
      code: 'PL422',
      field: `metadata.${column}`,
    });
  });
});
