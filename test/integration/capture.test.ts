import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { captureProblems } from '#adapters/postgres/outbox-state.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

interface OutboxRow {
  readonly stream: bigint;
  readonly id: bigint;
  readonly event_id: string;
  readonly type: string;
  readonly txid: string;
  readonly traceparent: string | null;
  readonly name: string;
  readonly resource_version: bigint;
  readonly generation: bigint;
  readonly [column: string]: unknown;
}

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
  ({ sql } = database);
});

afterAll(() => database.close());

beforeEach(async () => {
  await sql`delete from plumbline.resource where kind <> 'Tenant' and finalizers = '{}'`;
  await sql`delete from plumbline.outbox`;
});

describe('every row that is written is one record', () => {
  test.each([
    ['a multi-row INSERT', insertThree, ['ADDED one', 'ADDED two', 'ADDED three']],
    ['COPY', copyThree, ['ADDED one', 'ADDED two', 'ADDED three']],
    ['an upsert, as what it did to each row', upsert, ['ADDED one', 'MODIFIED one', 'ADDED two']],
    [
      'MERGE, as what it did to each row',
      merge,
      ['ADDED one', 'ADDED two', 'DELETED two', 'MODIFIED one', 'ADDED three'],
    ],
    ['a data-modifying WITH', writeInWith, ['ADDED one', 'ADDED two', 'MODIFIED one', 'DELETED two']],
    [
      'UPDATE and DELETE of many',
      changeMany,
      ['ADDED one', 'ADDED two', 'MODIFIED one', 'MODIFIED two', 'DELETED one', 'DELETED two'],
    ],
    [
      'a transaction, for each of its statements',
      changeInTransaction,
      ['ADDED one', 'MODIFIED one', 'MODIFIED one', 'DELETED one'],
    ],
  ])('%s', async (_way, write, expected) => {
    await write();
    const records = await outbox();
    expect(records.map(({ type, name }) => `${type} ${name}`).toSorted()).toEqual(expected.toSorted());
    expect(new Set(records.map((record) => record.event_id)).size).toBe(expected.length);
  });

  test('but not what was rolled back, nor what was undone to a savepoint', async () => {
    const connection = database.connection();
    await connection.unsafe(`begin; ${insertion('gone')}; rollback`);
    await connection.unsafe(`begin; ${insertion('kept')}; savepoint s; ${insertion('undone')}; rollback to s; commit`);
    expect((await outbox()).map(({ name }) => name)).toEqual(['kept']);
  });

  test('a deletion that finalizers held back is one DELETED, with the last state and the version of that write', async () => {
    await sql.unsafe(insertion('held', `'{example.dev/x}'`));
    await sql`update plumbline.resource set deletion_timestamp = now() where name = 'held'`;
    await sql`update plumbline.resource set finalizers = '{}', labels = '{"a":"b"}' where name = 'held'`;
    const records = await outbox();
    expect(records.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    expect(records[2]).toMatchObject({ labels: { a: 'b' }, finalizers: [], old_labels: {} });
    expect(records[2]?.resource_version).toBeGreaterThan(records[1]?.resource_version ?? 0n);
  });

  test('a plain deletion has the last state and a version of its own', async () => {
    await sql.unsafe(insertion('plain'));
    await sql`delete from plumbline.resource where name = 'plain'`;
    const [added, deleted] = await outbox();
    expect(deleted).toMatchObject({
      type: 'DELETED',
      spec: { size: 1 },
      old_resource_version: added?.resource_version,
    });
    expect(deleted?.resource_version).toBeGreaterThan(added?.resource_version ?? 0n);
  });
});

describe('a record', () => {
  test('belongs to the stream of its tenant; that of a cluster-scoped object to system', async () => {
    await sql.unsafe(insertion('mine'));
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values ('globex', 'example.dev', 'Widget', 'theirs'), ('system', 'example.dev', 'Planet', 'everyones')`;
    const owners =
      await sql`select o.name, s.tenant from plumbline.outbox o join plumbline.stream s on s.id = o.stream order by o.id`;
    expect(owners).toEqual([
      { name: 'mine', tenant: 'acme' },
      { name: 'theirs', tenant: 'globex' },
      { name: 'everyones', tenant: 'system' },
    ]);
  });

  test('has what was before, where it differs, and nothing where it does not', async () => {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec, labels, annotations, finalizers)
      values ('acme', 'example.dev', 'Widget', 'changing', '{"size":1}', '{"a":"1"}', '{"n":"1"}', '{example.dev/x}')`;
    await sql`update plumbline.resource set labels = '{"a":"2"}' where name = 'changing'`;
    await sql`update plumbline.resource set spec = '{"size":2}', status = '{"seen":1}' where name = 'changing'`;
    await sql`update plumbline.resource set deletion_timestamp = now() where name = 'changing'`;
    const [added, labelled, specified, marked] = await outbox();
    expect(oldOf(added)).toEqual({});
    expect(oldOf(labelled)).toEqual({ old_resource_version: added?.resource_version, old_labels: { a: '1' } });
    expect(oldOf(specified)).toEqual({
      old_resource_version: labelled?.resource_version,
      old_generation: 1n,
      old_spec: { size: 1 },
      old_status: {},
    });
    expect(oldOf(marked)).toEqual({ old_resource_version: specified?.resource_version, old_generation: 2n });
    expect([marked?.['deletion_requested'], specified?.['deletion_requested']]).toEqual([true, false]);
    await sql`update plumbline.resource set finalizers = '{}' where name = 'changing'`;
  });

  test('has the transaction that wrote it, the same for all that it wrote', async () => {
    const connection = database.connection();
    await connection`begin`;
    const [own] = await connection`select pg_current_xact_id()::text as id`;
    await connection.unsafe(insertion('first'));
    await connection.unsafe(insertion('second'));
    await connection`commit`;
    await sql.unsafe(insertion('third'));
    const txids = (await outbox()).map(({ txid }) => txid);
    expect(txids.slice(0, 2)).toEqual([own?.['id'], own?.['id']]);
    expect(txids[2]).not.toBe(own?.['id']);
  });

  test('has the traceparent that the session was given, and none otherwise', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const connection = database.connection();
    await connection.unsafe(
      `begin; set local plumbline.traceparent = '${traceparent}'; ${insertion('traced')}; commit`,
    );
    await connection.unsafe(insertion('untraced'));
    expect((await outbox()).map((record) => record.traceparent)).toEqual([traceparent, null]);
  });

  test('never has a secret, neither of now nor of before', async () => {
    const secret = 'correct horse battery staple';
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec, status)
      values ('acme', 'example.dev', 'Vault', 'safe',
        ${sql.json({ password: secret, users: [{ name: 'ann', token: secret }, 'odd', { name: 'bob' }] })},
        ${sql.json({ unsealKey: secret, phase: 'Open' })})`;
    await sql`update plumbline.resource set spec = ${sql.json({ password: `${secret}!`, users: { ann: { token: secret } } })},
      status = ${sql.json({ unsealKey: `${secret}?` })} where name = 'safe'`;
    await sql`update plumbline.resource set deletion_timestamp = now() where name = 'safe'`;
    await sql`update plumbline.resource set finalizers = '{}' where name = 'safe'`;
    const texts = await sql<{ text: string }[]>`select o::text as text from plumbline.outbox o order by id`;
    expect(texts.length).toBe(4);
    for (const { text } of texts) expect(text).not.toContain('horse');
    const [added, changed] = await outbox();
    expect(added?.['spec']).toEqual({ users: [{ name: 'ann' }, 'odd', { name: 'bob' }] });
    expect(added?.['status']).toEqual({ phase: 'Open' });
    expect(changed).toMatchObject({
      spec: { users: { ann: {} } },
      old_spec: { users: [{ name: 'ann' }, 'odd', { name: 'bob' }] },
    });
  });

  test('is there also when only a secret changed', async () => {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values ('acme', 'example.dev', 'Vault', 'rotated', '{"password":"old password"}')`;
    await sql`update plumbline.resource set spec = '{"password":"new password"}' where name = 'rotated'`;
    const [added, changed] = await outbox();
    expect(changed).toMatchObject({ type: 'MODIFIED', generation: 2n, spec: {} });
    expect(changed?.resource_version).toBeGreaterThan(added?.resource_version ?? 0n);
    await sql`update plumbline.resource set finalizers = '{}' where name = 'rotated'`;
  });
});

describe('capture cannot be got around', () => {
  test('TRUNCATE is refused, alone and with others', async () => {
    await sql.unsafe(insertion('there'));
    for (const text of ['truncate plumbline.resource cascade', 'truncate plumbline.kind cascade']) {
      expect(await refusalOf(sql.unsafe(text))).toMatchObject({ code: 'PL409' });
    }
    expect((await sql`select from plumbline.resource where name = 'there'`).length).toBe(1);
  });

  test('a healthy database has no captured table without its triggers', async () => {
    expect(await captureProblems(sql)).toEqual([]);
  });

  test.each([
    ['disabled', `alter table plumbline.resource disable trigger zz_capture_update`],
    ['disabled with all others', `alter table plumbline.resource disable trigger all`],
    ['for replicas only', `alter table plumbline.resource enable replica trigger zz_capture_update`],
    ['dropped', `drop trigger zz_capture_update on plumbline.resource`],
    ['renamed', `alter trigger zz_capture_update on plumbline.resource rename to other`],
  ])('a trigger that is %s is found', async (_how, damage) => {
    const connection = database.connection();
    await connection.unsafe(`begin; ${damage}`);
    const found = await connection`select missing_trigger from plumbline.uncaptured_tables()`;
    await connection`rollback`;
    expect(found.map((row) => row['missing_trigger'])).toContain('zz_capture_update');
  });

  test.each([
    ['switch a trigger off', `alter table plumbline.resource disable trigger zz_capture_update`],
    ['switch all off for its session', `set session_replication_role = replica`],
    ['truncate', `truncate plumbline.resource`],
    ['take records out of the outbox', `delete from plumbline.outbox`],
    ['forge a record', `insert into plumbline.outbox (stream) values (1)`],
    ['change the log', `delete from plumbline.event_log`],
    ['move a frontier', `update plumbline.frontier set last_seq = 0`],
    ['change the kinds', `update plumbline.kind set redact = '{}'`],
    ['open a stream', `insert into plumbline.stream (tenant) values ('forged')`],
    ['write itself a lease', `insert into plumbline.lease values ('k', 'me', 1, now())`],
    ['change what was applied', `delete from plumbline.migration`],
  ])('the role that serves cannot %s', async (_deed, text) => {
    const connection = database.connection();
    await connection`set role plumbline_server`;
    // insufficient_privilege
    expect(await refusalOf(connection.unsafe(text))).toMatchObject({ code: '42501' });
  });
});

function insertion(name: string, finalizers: string = `'{}'`): string {
  return `insert into plumbline.resource (tenant, api_group, kind, name, spec, finalizers)
    values ('acme', 'example.dev', 'Widget', '${name}', '{"size":1}', ${finalizers})`;
}

async function outbox(): Promise<readonly OutboxRow[]> {
  return sql<OutboxRow[]>`select * from plumbline.outbox order by id`;
}

function oldOf(record: OutboxRow | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record ?? {}).filter(([column, value]) => column.startsWith('old_') && value !== null),
  );
}

async function insertThree(): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'acme', 'example.dev', 'Widget', name from unnest(array['one', 'two', 'three']) name`;
}

async function copyThree(): Promise<void> {
  const stream =
    await database.connection()`copy plumbline.resource (tenant, api_group, kind, name) from stdin`.writable();
  const ended = new Promise((resolve, reject) => void stream.once('finish', resolve).once('error', reject));
  stream.end(['one', 'two', 'three'].map((name) => `acme\texample.dev\tWidget\t${name}\n`).join(''));
  await ended;
}

async function upsert(): Promise<void> {
  await sql.unsafe(insertion('one'));
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'acme', 'example.dev', 'Widget', name from unnest(array['one', 'two']) name
    on conflict (api_group, kind, tenant, name) do update set spec = '{"size":2}'`;
}

async function merge(): Promise<void> {
  await sql.unsafe(insertion('one'));
  await sql.unsafe(insertion('two'));
  await sql`merge into plumbline.resource r
    using (values ('one'), ('two'), ('three')) s (name) on r.name = s.name and r.kind = 'Widget'
    when matched and s.name = 'two' then delete
    when matched then update set spec = '{"size":2}'
    when not matched then insert (tenant, api_group, kind, name) values ('acme', 'example.dev', 'Widget', s.name)`;
}

async function writeInWith(): Promise<void> {
  await sql.unsafe(insertion('one'));
  await sql.unsafe(insertion('two'));
  await sql`with changed as (update plumbline.resource set spec = '{"size":2}' where name = 'one'),
    gone as (delete from plumbline.resource where name = 'two') select 1`;
}

async function changeMany(): Promise<void> {
  await sql.unsafe(insertion('one'));
  await sql.unsafe(insertion('two'));
  await sql`update plumbline.resource set spec = '{"size":2}' where name in ('one', 'two')`;
  await sql`delete from plumbline.resource where name in ('one', 'two')`;
}

async function changeInTransaction(): Promise<void> {
  const change = `update plumbline.resource set spec = jsonb_build_object('size', (spec ->> 'size')::integer + 1) where name = 'one'`;
  await database.connection().unsafe(`begin; ${insertion('one')}; ${change}; ${change};
    delete from plumbline.resource where name = 'one'; commit`);
}
