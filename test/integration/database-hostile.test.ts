/** What owners, and people with SQL, do to databases and roles that are managed: none of it stalls or outlasts a pass. */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Kind } from '#core/kind.ts';
import type { JsonObject } from '#core/json.ts';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

const READY = { result: 'done', error: undefined };
const GONE = { result: 'finalized', error: undefined };
const SILENT = { ...READY, events: [] };

let world: DatabaseWorld;
/** Its controllers log in as a superuser. */
let mighty: DatabaseWorld;
let version: number;

beforeAll(async () => {
  [world, mighty] = await Promise.all([openDatabaseWorld(), openDatabaseWorld({ isSuperuser: true })]);
  const [row] = await world.sql(`select current_setting('server_version_num')::int as version`);
  version = Number(row?.['version']);
  // Their stores are databases too.
  await Promise.all([world.newTenant(), mighty.newTenant()]);
});

afterAll(() => Promise.all([world.close(), mighty.close()]));

interface Made {
  readonly tenant: TenantPasses;
  readonly kind: Kind;
  /** Of the database; its owner's has `_owner` behind it. */
  readonly name: string;
}

async function make(spec: JsonObject = {}, { in: where = world }: { readonly in?: DatabaseWorld } = {}): Promise<Made> {
  const tenant = await where.newTenant();
  await tenant.put(where.database, 'orders', spec);
  expect((await tenant.settle(where.database, 'orders')).error ?? '').toBe('');
  return { tenant, kind: where.database, name: `${tenant.tenant}_orders` };
}

async function bind({ tenant }: Made, role: string, where: DatabaseWorld = world): Promise<string> {
  await tenant.put(where.binding, 'a', { database: 'orders', subject: 'ann', role });
  expect(await tenant.settle(where.binding, 'a')).toMatchObject(READY);
  return `${tenant.tenant}_ann`;
}

async function asOwner({ tenant, kind, name }: Made, ...statements: readonly string[]): Promise<void> {
  const session = world.connect(name, `${name}_owner`, await tenant.text(kind, 'orders', 'password'));
  for (const statement of statements) await session.unsafe(statement);
  await session.end();
}

async function one(text: string, database?: string): Promise<unknown> {
  const [row] = await world.sql(text, database);
  return row && { ...row };
}

async function remove({ tenant, kind }: Made): Promise<void> {
  await tenant.remove(kind, 'orders');
  expect(await tenant.pass(kind, 'orders')).toMatchObject(GONE);
}

describe('a new database', () => {
  test('is made while somebody is connected to the template of all others', async () => {
    const session = world.connect('template1', new URL(world.url).username, 'secret');
    await session`select`;
    const [made] = await Promise.allSettled([make()]);
    await session.end();
    if (made.status === 'rejected') throw made.reason;
    expect(
      await one(`select collate_of.same from (select a.datcollate = b.datcollate and a.encoding = b.encoding as same
      from pg_database a, pg_database b where a.datname = 'template1' and b.datname = '${made.value.name}') collate_of`),
    ).toEqual({
      same: true,
    });
  });
});

describe('settings that an owner puts on its database', () => {
  const SETTINGS = [
    "statement_timeout = '1ms'",
    "lock_timeout = '1ms'",
    "idle_session_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    'default_transaction_read_only = on',
    "default_transaction_isolation = 'serializable'",
    'default_transaction_deferrable = on',
    'transform_null_equals = on',
    'array_nulls = off',
    'quote_all_identifiers = on',
    'standard_conforming_strings = off',
    "client_encoding = 'LATIN1'",
    "bytea_output = 'escape'",
    'search_path = public',
  ];

  test('do not reach the sessions of its controllers, to its deletion', async () => {
    const made = await make();
    await asOwner(
      made,
      'create table things (id serial)',
      ...SETTINGS.map((setting) => `alter database "${made.name}" set ${setting}`),
      `alter database "${made.name}" set role = '${made.name}_owner'`,
      ...(version >= 170_000 ? [`alter database "${made.name}" set transaction_timeout = '1ms'`] : []),
    );
    await made.tenant.put(made.kind, 'orders', { extensions: ['citext'] });
    expect(await made.tenant.settle(made.kind, 'orders')).toMatchObject(READY);
    const ann = await bind(made, 'writer');
    expect(await one(`select pg_has_role('${ann}', 'pg_monitor', 'MEMBER') as monitors`)).toEqual({ monitors: false });
    await made.tenant.remove(world.binding, 'a');
    expect(await made.tenant.pass(world.binding, 'a')).toMatchObject(GONE);
    await remove(made);
  });
});

describe('an owner that closes its database to its controllers', () => {
  test('by making it a template finds it none again, also when it is to be deleted', async () => {
    const made = await make();
    await asOwner(made, `alter database "${made.name}" is_template true`);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(READY);
    expect(await one(`select datistemplate from pg_database where datname = '${made.name}'`)).toEqual({
      datistemplate: false,
    });
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
    await asOwner(made, `alter database "${made.name}" is_template true`);
    await remove(made);
  });

  test.each(['connection limit 0', 'allow_connections false'])('by %s finds it open again', async (option) => {
    const made = await make({ extensions: ['citext'] });
    const login = world.connect('postgres', new URL(world.url).username, 'secret');
    await login.unsafe(`set role "${made.name}_owner"`);
    await login.unsafe(`alter database "${made.name}" ${option}`);
    await login.end();
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(READY);
    expect(await one(`select datallowconn, datconnlimit from pg_database where datname = '${made.name}'`)).toEqual({
      datallowconn: true,
      datconnlimit: -1,
    });
    await remove(made);
  });
});

describe("an owner's role that was changed by hand", () => {
  test.each([
    ['another password', (owner: string) => `alter role "${owner}" password 'another'`],
    ['no password', (owner: string) => `alter role "${owner}" password null`],
    [
      'a password that takes longer to check than ours',
      (owner: string) =>
        `alter role "${owner}" password 'SCRAM-SHA-256$20000:${'A'.repeat(22)}==$${'A'.repeat(43)}=:${'A'.repeat(43)}='`,
    ],
  ])('has the password of the status again after %s, where the login may see it', async (_what, change) => {
    const made = await make({}, { in: mighty });
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
    await world.sql(change(`${made.name}_owner`));
    const pass = await made.tenant.pass(made.kind, 'orders');
    expect(pass).toMatchObject({ ...READY, events: [expect.stringContaining('password')] });
    await asOwner(made, 'create table things ()');
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
  });

  test.each(['superuser', 'no superuser'])('expires no more and takes all connections: %s', async (who) => {
    const where = who === 'superuser' ? mighty : world;
    const made = await make({}, { in: where });
    const owner = `${made.name}_owner`;
    await world.sql(`alter role "${owner}" valid until '2020-01-01' connection limit 0`);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(READY);
    expect(
      await one(`select rolvaliduntil = 'infinity' as lasts, rolconnlimit from pg_roles where rolname = '${owner}'`),
    ).toEqual({ lasts: true, rolconnlimit: -1 });
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
  });

  test('has no settings of its own, neither everywhere nor in one database', async () => {
    const made = await make();
    const owner = `${made.name}_owner`;
    await world.sql(`alter role "${owner}" set role = 'pg_monitor'`);
    await world.sql(`alter role "${owner}" in database "${made.name}" set default_transaction_read_only = on`);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(READY);
    expect(await world.sql(`select from pg_db_role_setting where setrole = '"${owner}"'::regrole`)).toEqual([]);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
  });

  test('keeps settings that only a superuser may take, and is not changed for them again and again', async () => {
    const made = await make();
    await world.sql(`alter role "${made.name}_owner" set log_statement = 'all'`);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
    await world.sql(`alter role "${made.name}_owner" reset all`);
  });

  test('is a member of nothing, or it is told who has to take it out', async () => {
    const made = await make({}, { in: mighty });
    const owner = `${made.name}_owner`;
    await world.sql(`grant pg_read_all_data, pg_monitor to "${owner}"`);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(READY);
    expect(await world.sql(`select from pg_auth_members where member = '"${owner}"'::regrole`)).toEqual([]);
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
    const weak = await make();
    await world.sql(`grant pg_read_all_data to "${weak.name}_owner"`);
    const { error = '' } = await weak.tenant.pass(weak.kind, 'orders');
    // Until 16, whoever may make roles may take them out of all others.
    expect(error).toContain(version >= 160_000 ? 'pg_read_all_data' : '');
    await world.sql(`revoke pg_read_all_data from "${weak.name}_owner"`);
    expect(await weak.tenant.pass(weak.kind, 'orders')).toMatchObject(SILENT);
  });
});

describe("a subject's role that was changed by hand", () => {
  test('is what its bindings make it again', async () => {
    const made = await make({}, { in: mighty });
    const other = await make({}, { in: mighty });
    const ann = await bind(made, 'owner', mighty);
    await world.sql(`grant pg_read_all_data, "${other.name}_owner" to "${ann}";
      alter role "${ann}" valid until '2020-01-01'; alter role "${ann}" set role = 'pg_monitor'`);
    expect(await made.tenant.pass(mighty.binding, 'a')).toMatchObject(READY);
    expect(
      await world.sql(`select roleid::regrole::text as name from pg_auth_members where member = '"${ann}"'::regrole`),
    ).toEqual([{ name: `${made.name}_owner` }]);
    expect(await world.sql(`select from pg_db_role_setting where setrole = '"${ann}"'::regrole`)).toEqual([]);
    expect(await made.tenant.pass(mighty.binding, 'a')).toMatchObject(SILENT);
  });

  test('cannot pass its rights on', async () => {
    const made = await make();
    await asOwner(made, 'create table things (id serial)');
    const ann = await bind(made, 'reader');
    await world.sql(`create role "${ann}_friend"`);
    await asOwner(
      made,
      `grant select on things to "${ann}" with grant option`,
      `grant usage on schema public to "${ann}" with grant option`,
      `alter default privileges grant select on tables to "${ann}" with grant option`,
    );
    await world.sql(`set role "${ann}"; grant select on things to "${ann}_friend"`, made.name);
    expect(await made.tenant.pass(world.binding, 'a')).toMatchObject(READY);
    expect(
      await one(
        `select has_table_privilege('${ann}', 'things', 'select') as reads,
          has_table_privilege('${ann}', 'things', 'select with grant option') as table,
          has_schema_privilege('${ann}', 'public', 'usage with grant option') as schema,
          has_table_privilege('${ann}_friend', 'things', 'select') as friend,
          exists (select from pg_default_acl, aclexplode(defaclacl) where grantee = '"${ann}"'::regrole and is_grantable) as future`,
        made.name,
      ),
    ).toEqual({ reads: true, table: false, schema: false, friend: false, future: false });
    expect(await made.tenant.pass(world.binding, 'a')).toMatchObject(SILENT);
    await world.sql(`drop role "${ann}_friend"`);
  });

  test("cannot make others members of the owner's role", async () => {
    const made = await make({}, { in: mighty });
    const ann = await bind(made, 'owner', mighty);
    await world.sql(`grant "${made.name}_owner" to "${ann}" with admin option`);
    expect(await made.tenant.pass(mighty.binding, 'a')).toMatchObject(READY);
    const members = await world.sql(`select admin_option from pg_auth_members where member = '"${ann}"'::regrole`);
    expect(members.map(({ admin_option: isAdmin }) => isAdmin)).toEqual([false]);
    expect(await made.tenant.pass(mighty.binding, 'a')).toMatchObject(SILENT);
  });
});

describe('a deletion while strangers are connected', () => {
  test('counts those that its login may not look at, whatever they call themselves, and does not try to drop', async () => {
    const made = await make();
    const stranger = `${made.name}_stranger`;
    await world.sql(
      `create role "${stranger}" login password 'x'; grant connect on database "${made.name}" to "${stranger}"`,
    );
    const session = world.connect(made.name, stranger, 'x');
    await session.unsafe(`set application_name = 'plumbline ${randomUUID()} 1'`);
    await made.tenant.remove(made.kind, 'orders');
    const started = performance.now();
    const pass = await made.tenant.pass(made.kind, 'orders');
    // PostgreSQL waits for 5 s for sessions to go before it refuses a drop.
    expect(performance.now() - started).toBeLessThan(4_000);
    expect(pass.nextMs).toBe(5_000);
    const status = await made.tenant.status(made.kind, 'orders');
    expect(JSON.stringify(status['conditions'])).toContain(`1 session is connected to database \\"${made.name}\\"`);
    await session.end();
    expect(await made.tenant.settle(made.kind, 'orders')).toMatchObject(GONE);
    await world.sql(`drop role "${stranger}"`);
  });

  test('is tried again later where the server refused it for something that is no session', async () => {
    const made = await make({}, { in: mighty });
    await world.sql(
      `create subscription held connection '' publication none with (connect = false, enabled = false, slot_name = none)`,
      made.name,
    );
    await made.tenant.remove(made.kind, 'orders');
    expect((await made.tenant.pass(made.kind, 'orders')).nextMs).toBe(30_000);
    expect(JSON.stringify((await made.tenant.status(made.kind, 'orders'))['conditions'])).toContain('subscription');
    await world.sql('drop subscription held', made.name);
    expect(await made.tenant.settle(made.kind, 'orders')).toMatchObject(GONE);
  });
});

describe('a database that was retained', () => {
  async function retained(where: DatabaseWorld = world): Promise<Made> {
    const made = await make({ deletionPolicy: 'Retain' }, { in: where });
    await remove(made);
    return made;
  }

  async function adopt({ tenant, kind }: Made): Promise<{ readonly error: string | undefined }> {
    await tenant.put(kind, 'orders', { adoptionPolicy: 'AdoptUnowned' });
    return tenant.settle(kind, 'orders');
  }

  test('is taken over with its owner, which gets a new password', async () => {
    const made = await retained();
    expect(await adopt(made)).toMatchObject(READY);
    await asOwner(made, 'create table things ()');
    expect(await made.tenant.pass(made.kind, 'orders')).toMatchObject(SILENT);
  });

  test.each([
    ['has more power', (o: string) => `alter role "${o}" createdb`],
    ['is a member of another', (o: string) => `grant pg_monitor to "${o}"`],
    ['has another member', (o: string) => `create role "${o}_friend"; grant "${o}" to "${o}_friend"`],
    ['owns something elsewhere', (o: string) => `create table t_${o} (); alter table t_${o} owner to "${o}"`],
    ['has rights elsewhere', (o: string) => `create table t_${o} (); grant select on t_${o} to "${o}"`],
    ['is not its owner', (o: string) => `alter database "${o.slice(0, -6)}" owner to plumbline`],
  ])('is left alone when its old owner %s', async (_what, change) => {
    const made = await retained(mighty);
    const owner = `${made.name}_owner`;
    await world.sql(change(owner));
    expect((await adopt(made)).error).toMatch(/^OwnershipConflict: role/);
    expect(
      await one(`select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = '${owner}'`),
    ).toEqual({ comment: null });
    await world.sql(`drop table if exists t_${owner}; drop role if exists "${owner}_friend"`);
  });

  test('keeps its old owner to itself without AdoptUnowned', async () => {
    const { tenant, kind } = await retained();
    await tenant.put(kind, 'orders', {});
    expect((await tenant.settle(kind, 'orders')).error).toMatch(/^OwnershipConflict: role/);
  });
});

describe('what gets into SQL', () => {
  const work = () => ({ uid: randomUUID(), fencingToken: 1n, signal: new AbortController().signal });

  test('is a number where a number belongs, and a text where a name does', async () => {
    const server = world.servers.open('local', work());
    const limit = '5; drop role x' as unknown as number;
    const name = `x${randomUUID()}`;
    await expect(server.databases.change('postgres', { connectionLimit: limit })).rejects.toThrow(
      'a number in SQL must be a safe integer, not "5; drop role x"',
    );
    await expect(
      server.databases.create({ name, draft: `${name}_d`, owner: 'plumbline', connectionLimit: limit, comment: '' }),
    ).rejects.toThrow('a number in SQL must be a safe integer');
    await expect(server.roles.drop({ a: 1 } as unknown as string, 'x')).rejects.toThrow(
      'a name in SQL must be a text, not {"a":1}',
    );
    await expect(server.databases.dropDraft('a\0b')).rejects.toThrow('a name in SQL must be a text without NUL');
    await server.close();
  });
});
