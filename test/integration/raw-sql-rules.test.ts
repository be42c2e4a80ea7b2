import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { untilLockWaits } from '#test/support/lock-waits.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

interface Row {
  readonly uid: string;
  readonly version: string;
  readonly resource_version: bigint;
  readonly generation: bigint;
  readonly creation_timestamp: Date;
  readonly deletion_timestamp: Date | null;
  readonly finalizers: readonly string[];
}

let database: PreparedDatabase;
let sql: Sql;
let name: string;
let objects = 0;

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
  ({ sql } = database);
});

afterAll(() => database.close());

beforeEach(() => {
  name = `object-${(objects += 1)}`;
});

describe('an object that is inserted by SQL', () => {
  test('gets its system fields from the database, whatever the statement says', async () => {
    const [row] = await sql<Row[]>`
      insert into plumbline.resource (uid, tenant, api_group, version, kind, name, resource_version, generation,
        creation_timestamp, deletion_timestamp)
      values ('00000000-0000-4000-8000-000000000000', 'acme', 'example.dev', 'v9', 'Widget', ${name}, 1, 77,
        '1999-01-01', '1999-01-01') returning *`;
    expect(row).toMatchObject({ version: 'v1', generation: 1n, deletion_timestamp: null });
    expect(row?.uid).not.toContain('00000000');
    expect(row?.resource_version).toBeGreaterThan(1n);
    expect(Date.now() - Number(row?.creation_timestamp)).toBeLessThan(60_000);
  });

  test('never has the uid of another, nor a version twice', async () => {
    const rows = await sql<Row[]>`insert into plumbline.resource (tenant, api_group, kind, name)
      select 'acme', 'example.dev', 'Widget', ${name} || '-' || n from generate_series(1, 50) n returning *`;
    expect(new Set(rows.map((row) => row.uid)).size).toBe(50);
    expect(new Set(rows.map((row) => row.resource_version)).size).toBe(50);
  });

  test("gets its kind's finalizers behind its own, each once", async () => {
    const finalizers = ['b.dev/x', 'example.dev/vault', 'b.dev/x', 'a.dev/y'];
    const row = await insert({ kind: 'Vault', finalizers });
    expect(row.finalizers).toEqual(['b.dev/x', 'example.dev/vault', 'a.dev/y']);
  });

  test.each([
    ['of a kind that nobody defined', 'acme', 'Gadget', 'PL404', undefined],
    ['in a tenant that does not exist', 'nowhere', 'Widget', 'PL404', 'metadata.namespace'],
    ['of a namespaced kind in the tenant of cluster-scoped objects', 'system', 'Widget', 'PL422', 'metadata.namespace'],
    ['of a cluster-scoped kind in a tenant', 'acme', 'Planet', 'PL422', 'metadata.namespace'],
  ])('is refused %s', async (_what, tenant, kind, code, field) => {
    const refusal = await refusalOf(insert({ tenant, kind }));
    expect([refusal.code, refusal.field]).toEqual([code, field]);
  });

  test.each(['', 'Upper', '-first', 'last.', 'a b', 'a'.repeat(254), 'ü'])(
    'is refused with the name %j',
    async (bad) => {
      const refusal = await refusalOf(insert({ name: bad }));
      expect([refusal.code, refusal.field]).toEqual(['PL422', 'metadata.name']);
    },
  );

  test('is refused under a name that is taken in its tenant and kind, and nowhere else', async () => {
    await insert();
    await insert({ tenant: 'globex' });
    await insert({ kind: 'Vault' });
    expect((await refusalOf(insert())).code).toBe('23505');
  });
});

describe('an object that is updated by SQL', () => {
  test('gets a higher version with every change, and a new generation with its spec alone', async () => {
    const created = await insert();
    let version = created.resource_version;
    for (const [change, generation] of [
      [`labels = '{"a":"b"}'`, 1n],
      [`annotations = '{"a":"b"}'`, 1n],
      [`finalizers = '{example.dev/x}'`, 1n],
      [`owner_references = '[{"uid":"1"}]'`, 1n],
      [`status = '{"seen":1}'`, 1n],
      [`spec = '{"size":1}'`, 2n],
      [`spec = '{"size":2}', status = '{}'`, 3n],
    ] as const) {
      const row = await update(change);
      expect(row?.generation).toBe(generation);
      expect(row?.resource_version).toBeGreaterThan(version);
      version = row?.resource_version ?? 0n;
    }
  });

  test('keeps its system fields, whatever the statement says', async () => {
    const before = await insert();
    const after = await update(
      `resource_version = 1, generation = 99, creation_timestamp = '1999-01-01', spec = '{"size":1}'`,
    );
    expect(after?.creation_timestamp).toEqual(before.creation_timestamp);
    expect(after?.generation).toBe(2n);
    expect(after?.resource_version).toBeGreaterThan(before.resource_version);
  });

  test('is not written at all when nothing changes: no version, no event', async () => {
    const before = await insert({ spec: '{"b":1,"a":2}' });
    const records = await countRecords();
    expect(
      await update(`spec = '{"a":2.0, "b":1}', labels = labels, generation = 5, deletion_timestamp = null`),
    ).toBeUndefined();
    const [after] = await sql<Row[]>`select * from plumbline.resource where uid = ${before.uid}`;
    expect(after).toEqual(before);
    expect(await countRecords()).toBe(records);
  });

  test.each([
    ['uid', `uid = gen_random_uuid()`],
    ['tenant', `tenant = 'globex'`],
    ['kind', `kind = 'Vault'`],
    ['name', `name = 'other'`],
  ])('cannot change its %s', async (_field, change) => {
    await insert();
    const refusal = await refusalOf(update(change));
    expect([refusal.code, refusal.field]).toEqual(['PL422', 'metadata']);
  });
});

describe('an object that is deleted by SQL', () => {
  test('with finalizers, is refused: its deletion must be requested', async () => {
    await insert({ finalizers: ['example.dev/x'] });
    const refusal = await refusalOf(sql`delete from plumbline.resource where name = ${name}`);
    expect([refusal.code, refusal.field]).toEqual(['PL409', 'metadata.finalizers']);
  });

  test('by request, stays until its last finalizer is gone, with one more generation', async () => {
    await insert({ finalizers: ['example.dev/x', 'example.dev/y'] });
    const marked = await update(`deletion_timestamp = '1999-01-01'`);
    expect(marked?.generation).toBe(2n);
    expect(Date.now() - Number(marked?.deletion_timestamp)).toBeLessThan(60_000);
    const one = await update(`finalizers = '{example.dev/y}'`);
    expect(one).toMatchObject({ finalizers: ['example.dev/y'], generation: 2n });
    await update(`finalizers = '{}'`);
    expect(await sql`select from plumbline.resource where name = ${name}`).toEqual([]);
  });

  test('by request and without finalizers, goes at once', async () => {
    await insert();
    await update(`deletion_timestamp = now()`);
    expect(await sql`select from plumbline.resource where name = ${name}`).toEqual([]);
  });

  test('cannot be kept, nor asked for twice, nor change its spec, nor get another finalizer', async () => {
    await insert({ finalizers: ['example.dev/x'] });
    const marked = await update(`deletion_timestamp = now()`);
    expect(await update(`deletion_timestamp = null`)).toBeUndefined();
    expect(await update(`deletion_timestamp = now() + interval '1 day'`)).toBeUndefined();
    expect(await refusalOf(update(`spec = '{"size":1}'`))).toMatchObject({ code: 'PL409', field: 'spec' });
    expect(await refusalOf(update(`finalizers = finalizers || '{example.dev/z}'`))).toMatchObject({
      code: 'PL422',
      field: 'metadata.finalizers',
    });
    const labelled = await update(`labels = '{"a":"b"}', status = '{"going":true}'`);
    expect(labelled).toMatchObject({ deletion_timestamp: marked?.deletion_timestamp, generation: 2n });
  });

  test('leaves its name to another, with another uid', async () => {
    const first = await insert();
    await sql`delete from plumbline.resource where name = ${name}`;
    const second = await insert();
    expect(second.uid).not.toBe(first.uid);
    expect(second.resource_version).toBeGreaterThan(first.resource_version);
  });
});

describe('a tenant', () => {
  test('that has objects cannot go, and one without them takes its stream along', async () => {
    await createTenants(sql, [name]);
    await insert({ tenant: name, name: 'last' });
    const remove = (): Promise<unknown> => sql`delete from plumbline.resource where kind = 'Tenant' and name = ${name}`;
    expect(await refusalOf(remove())).toMatchObject({ code: 'PL409', field: 'metadata.name' });
    await sql`delete from plumbline.resource where tenant = ${name}`;
    await remove();
    expect((await refusalOf(insert({ tenant: name, name: 'late' }))).code).toBe('PL404');
    expect(await sql`select closed_at is not null as closed from plumbline.stream where tenant = ${name}`).toEqual([
      { closed: true },
    ]);
  });

  test('that comes again has a new stream', async () => {
    await createTenants(sql, [name]);
    await sql`delete from plumbline.resource where kind = 'Tenant' and name = ${name}`;
    await createTenants(sql, [name]);
    const streams =
      await sql`select closed_at is not null as closed from plumbline.stream where tenant = ${name} order by id`;
    expect(streams).toEqual([{ closed: true }, { closed: false }]);
  });

  test('whose deletion was requested takes no new objects and no new specs, but what its controllers report', async () => {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
      values ('system', 'plumbline.dev', 'Tenant', ${name}, '{example.dev/x}')`;
    await insert({ tenant: name, name: 'early' });
    await sql`update plumbline.resource set deletion_timestamp = now() where kind = 'Tenant' and name = ${name}`;
    const late = refusalOf(insert({ tenant: name, name: 'late' }));
    expect(await late).toMatchObject({ code: 'PL409', field: 'metadata.namespace' });
    const change = refusalOf(sql`update plumbline.resource set spec = '{"size":1}' where tenant = ${name}`);
    expect(await change).toMatchObject({ code: 'PL409', field: 'spec' });
    const reported = await sql`update plumbline.resource set status = '{"seen":1}' where tenant = ${name}`;
    expect(reported.count).toBe(1);
  });

  test('that goes while an object is being created in it waits for that one', async () => {
    await createTenants(sql, [name]);
    const creating = database.connection();
    await creating`begin`;
    await creating`insert into plumbline.resource (tenant, api_group, kind, name) values (${name}, 'example.dev', 'Widget', 'first')`;
    const deletion = refusalOf(sql`delete from plumbline.resource where kind = 'Tenant' and name = ${name}`);
    await untilLockWaits(sql);
    await creating`commit`;
    expect(await deletion).toMatchObject({ code: 'PL409' });
  });
});

test.each(['Upper', 'a.b', 'system', 'a'.repeat(64)])('a tenant cannot be named %j', async (bad) => {
  const refusal = await refusalOf(createTenants(sql, [bad]));
  expect([refusal.code, refusal.field]).toEqual(['PL422', 'metadata.name']);
});

interface Inserted {
  readonly tenant?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly finalizers?: readonly string[];
  readonly spec?: string;
}

async function insert(values: Inserted = {}): Promise<Row> {
  const { tenant = 'acme', kind = 'Widget', finalizers = [], spec = '{}' } = values;
  const [row] = await sql<Row[]>`insert into plumbline.resource (tenant, api_group, kind, name, finalizers, spec)
    values (${tenant}, 'example.dev', ${kind}, ${values.name ?? name}, ${[...finalizers]}::text[], ${spec}::text::jsonb)
    returning *`;
  if (!row) throw new Error('nothing was inserted');
  return row;
}

/** The row as it was written; undefined when it was not. */
async function update(assignments: string): Promise<Row | undefined> {
  const [row] = await sql.unsafe<Row[]>(`update plumbline.resource set ${assignments} where name = $1 returning *`, [
    name,
  ]);
  return row;
}

async function countRecords(): Promise<number> {
  return (await sql`select from plumbline.outbox`).length;
}
