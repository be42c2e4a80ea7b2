import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

let database: PreparedDatabase;
let server: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
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
    ['take a lease', "select plumbline.acquire_lease('orphan-sweep', 'me', interval '1 hour')"],
    ['drop the days of the log', 'select plumbline.expire_event_log(now())'],
    ['read the keys of cursors', 'select * from plumbline.cursor_key'],
    ['read whose tokens are blocked', 'select * from plumbline.token_block'],
    ['read what was done to groups', 'select * from plumbline.group_action'],
    ['read what is left for controllers to do', 'select * from plumbline.work_item'],
    ['say that retention took events', "select plumbline.advance_start('t', 1)"],
    ['count the objects of a tenant', "select * from plumbline.tenant_objects('globex')"],
    ['find the stream of a tenant', "select * from plumbline.tenant_stream('globex')"],
    ['report what blocks deletions', "select plumbline.report_blocked_deletions('0', now(), 1)"],
    ['delete a group', "select plumbline.delete_group(1, 'me', 'none')"],
    ['settle a group', 'select plumbline.settle_due_group(1)'],
  ])('cannot %s', async (_, statement) => {
    expect((await refusalOf(server.unsafe(statement))).code).toBe('42501');
  });
});

describe('of the tables, the serving role', () => {
  /** Of none more than it needs to answer callers. */
  const READABLE = {
    'has policies for its tenants': [
      'resource',
      'stream',
      'outbox',
      'event_log',
      'object_event',
      'forced_deletion',
      'object_count',
      'watch_group',
      'group_member',
      'group_lane',
      'group_dead_letter',
    ],
    'tells where the log of a stream lies, by its number': ['frontier', 'topic', 'manifest', 'quarantine'],
    'knows no tenant': ['migration', 'kind', 'controller', 'reporter', 'quota_default'],
  };

  test('reads these alone', async () => {
    const names = await tablesWith('select');
    expect(names).toEqual(Object.values(READABLE).flat().toSorted());
  });

  test('sees of those that hold something of a tenant what it serves', async () => {
    const rows = await database.sql<{ name: string }[]>`
      select distinct c.relname::text as name from pg_class c join pg_policy p on p.polrelid = c.oid
      where c.relnamespace = 'plumbline'::regnamespace and c.relrowsecurity
        and 'plumbline_server'::regrole::oid = any (p.polroles)`;
    expect(rows.map(({ name }) => name).toSorted()).toEqual(READABLE['has policies for its tenants'].toSorted());
  });

  test('writes objects alone', async () => {
    expect(await tablesWith('insert, update, delete, truncate')).toEqual(['resource']);
  });

  async function tablesWith(right: string): Promise<readonly string[]> {
    const rows = await database.sql<{ name: string }[]>`
      select relname::text as name from pg_class
      where relnamespace = 'plumbline'::regnamespace and relkind in ('r', 'p', 'v')
        and has_table_privilege('plumbline_server', oid, ${right})`;
    return rows.map(({ name }) => name).toSorted();
  }
});

describe('of the functions, the serving role may call', () => {
  /** What a tenant's statements call. Whatever acts as its owner passes the second wall, and must ask whom it serves. */
  const ALLOWED = {
    'asks for the tenants of the transaction': ['force_delete', 'report_status'],
    'reads these tenants': ['seen_tenants', 'unseen_tenants', 'seen_streams'],
    'reads nothing but its arguments': [
      'redact',
      'redact_path',
      'propagation_finalizers',
      'owner_uid',
      'assert_observed',
      'stamp_conditions',
      'is_running',
    ],
    'reads kinds alone': ['foreign_status_part'],
    'reads what the caller sees': ['object_limit'],
  };

  test('these alone', async () => {
    const rows = await database.sql<{ name: string }[]>`
      select distinct proname::text as name from pg_proc
      where pronamespace = 'plumbline'::regnamespace and has_function_privilege('plumbline_server', oid, 'execute')`;
    const names = rows.map(({ name }) => name).toSorted();
    expect(names).toEqual(Object.values(ALLOWED).flat().toSorted());
  });

  test('those that act as their owner, with nothing done to a tenant that the transaction does not serve', async () => {
    const [object] = await database.sql<{ uid: string }[]>`
      insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
      values ('globex', 'example.dev', 'Widget', 'held', '{example.dev/a}') returning uid`;
    const uid = object?.uid ?? '';
    await database.sql`update plumbline.resource set deletion_timestamp = clock_timestamp() where uid = ${uid}`;
    const acme = scoped(server, { tenants: ['acme'] });
    expect(await acme`select * from plumbline.force_delete(${uid}, null, 'me', 'none')`).toHaveLength(0);
    const made = JSON.stringify({ uid, tenant: 'acme', api_group: 'example.dev', kind: 'Widget' });
    const reported = acme`select w.* from plumbline.report_status(
      jsonb_populate_record(null::plumbline.resource, ${made}::text::jsonb), 'me', 1, '{}') w`;
    expect(await reported).toHaveLength(0);
    const [kept] = await database.sql`select finalizers from plumbline.resource where uid = ${uid}`;
    expect(kept).toEqual({ finalizers: ['example.dev/a'] });
    const globex = scoped(server, { tenants: ['globex'] });
    expect(await globex`select * from plumbline.force_delete(${uid}, null, 'me', 'none')`).toHaveLength(1);
  });

  test('the limit of objects, without that of a tenant that the transaction does not serve', async () => {
    await database.sql`update plumbline.resource set spec = '{"quota": {"objects": 7}}'
      where tenant = 'system' and kind = 'Tenant' and name = 'globex'`;
    const limitFor = (tenants: readonly string[]) =>
      scoped(server, { tenants })`select plumbline.object_limit('globex') as most`;
    expect(await limitFor(['globex'])).toEqual([{ most: 7n }]);
    expect(await limitFor(['acme'])).toEqual([{ most: null }]);
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
