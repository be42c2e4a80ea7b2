import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

let world: DatabaseWorld;
/** Whose controllers are a superuser, and may take back what another superuser did. */
let mighty: DatabaseWorld;

beforeAll(async () => {
  world = await openDatabaseWorld();
  mighty = await openDatabaseWorld({ isSuperuser: true });
});

afterAll(async () => {
  await world.close();
  await mighty.close();
});

const READY = { result: 'done', error: undefined };

interface Made {
  readonly tenant: TenantPasses;
  readonly name: string;
  readonly owner: string;
  readonly marker: string;
  readonly password: string;
}

async function make(spec: Parameters<TenantPasses['put']>[2] = {}, where: DatabaseWorld = world): Promise<Made> {
  const tenant = await where.newTenant();
  await tenant.put(where.database, 'orders', spec);
  expect(await tenant.settle(where.database, 'orders')).toMatchObject(READY);
  const uid = (await tenant.read(where.database, 'orders'))?.metadata.uid;
  return {
    tenant,
    name: `${tenant.tenant}_orders`,
    owner: await tenant.text(world.database, 'orders', 'owner'),
    marker: `plumbline:${tenant.installation}/plumbline.dev/ManagedDatabase/${uid}`,
    password: await tenant.text(world.database, 'orders', 'password'),
  };
}

/** What a superuser sees. */
async function databaseRow(name: string): Promise<unknown> {
  const [row] = await world.sql(`select datdba::regrole::text as owner, datconnlimit as "limit",
    shobj_description(oid, 'pg_database') as comment, has_database_privilege('public', oid, 'connect') as "isOpen",
    has_database_privilege(datdba, oid, 'create, connect') as "hasOwner" from pg_database where datname = '${name}'`);
  return row && { ...row };
}

async function roleRow(name: string): Promise<unknown> {
  const [row] = await world.sql(`select rolsuper, rolcreatedb, rolcreaterole, rolcanlogin,
    shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = '${name}'`);
  return row && { ...row };
}

const humble = { rolsuper: false, rolcreatedb: false, rolcreaterole: false, rolcanlogin: true };

describe('a ManagedDatabase', () => {
  test('becomes a database and a role that owns it, both with its marker, closed to everybody else', async () => {
    const { tenant, name, owner, marker, password } = await make({ connectionLimit: 7, extensions: ['citext'] });
    expect(owner).toBe(`${name}_owner`);
    expect(await databaseRow(name)).toEqual({ owner, limit: 7, comment: marker, isOpen: false, hasOwner: true });
    expect(await roleRow(owner)).toEqual({ ...humble, comment: marker });
    expect(await tenant.status(world.database, 'orders')).toMatchObject({
      server: 'local',
      database: name,
      host: '127.0.0.1',
    });
    expect(password).toMatch(/^[\w-]{32}$/);
    const session = world.connect(name, owner, password);
    const [same] = await session`select 'A'::citext = 'a' as same`;
    expect(same?.['same']).toBe(true);
    await session`create table made_by_owner ()`;
    await session.end();
  });

  test('is written down before anything is made', async () => {
    const tenant = await world.newTenant();
    await tenant.put(world.database, 'orders', {});
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'not-ready', nextMs: 0 });
    expect(await tenant.status(world.database, 'orders')).toMatchObject({ database: `${tenant.tenant}_orders` });
    expect(await databaseRow(`${tenant.tenant}_orders`)).toBeUndefined();
  });

  test('is not touched by a pass that finds nothing to do', async () => {
    const { tenant, name } = await make({ connectionLimit: 7, extensions: ['citext'] });
    const versions = `select (select xmin from pg_database where datname = '${name}')::text,
      (select xmin from pg_authid where rolname = '${name}_owner')::text as role`;
    const before = await world.sql(versions);
    const status = await tenant.status(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ ...READY, events: [] });
    expect(await world.sql(versions)).toEqual(before);
    expect(await tenant.status(world.database, 'orders')).toEqual(status);
  });

  test.each([
    ['the connection limit', 'alter database %d connection limit 3'],
    ['who may connect', 'grant connect, temporary on database %d to public'],
    ["the owner's rights", 'revoke connect on database %d from %o'],
    ["the owner's login", 'alter role %o nologin'],
    ["the owner's power to make roles", 'alter role %o createrole'],
    ["the owner's power to make databases", 'alter role %o createdb'],
  ])('has %s repaired', async (_, drift) => {
    const { tenant, name, owner, marker } = await make();
    await world.sql(drift.replaceAll('%d', `"${name}"`).replaceAll('%o', `"${owner}"`));
    // Who is no superuser cannot take powers that it does not have itself.
    expect(await tenant.pass(world.database, 'orders')).toMatchObject(READY);
    expect(await databaseRow(name)).toEqual({ owner, limit: -1, comment: marker, isOpen: false, hasOwner: true });
    expect(await roleRow(owner)).toEqual({ ...humble, comment: marker });
  });

  test.each([
    ['a superuser', 'alter role %o superuser'],
    ['without its owner', 'alter database %d owner to plumbline; drop owned by %o; drop role %o'],
  ])('%s is what it was, where the server is ours', async (_, drift) => {
    const { tenant, name, owner, marker, password } = await make({}, mighty);
    await world.sql(drift.replaceAll('%d', `"${name}"`).replaceAll('%o', `"${owner}"`));
    expect(await tenant.pass(mighty.database, 'orders')).toMatchObject(READY);
    expect(await databaseRow(name)).toEqual({ owner, limit: -1, comment: marker, isOpen: false, hasOwner: true });
    expect(await roleRow(owner)).toEqual({ ...humble, comment: marker });
    const session = world.connect(name, owner, password);
    await session`select`;
    await session.end();
  });

  test('that was dropped is made again, and says so', async () => {
    const { tenant, name, owner, marker } = await make();
    await world.sql(`drop database "${name}"`);
    const pass = await tenant.pass(world.database, 'orders');
    expect(pass).toMatchObject({ ...READY, events: [`DatabaseCreated: database "${name}" was made`] });
    expect(await databaseRow(name)).toMatchObject({ owner, comment: marker });
  });

  test('gets extensions that are added or were dropped, and keeps those that are no longer named', async () => {
    const { tenant, name } = await make({ extensions: ['citext'] });
    await world.sql('drop extension citext', name);
    await tenant.put(world.database, 'orders', { extensions: ['citext', 'earthdistance'] });
    if ((await tenant.pass(world.database, 'orders')).result === 'terminal') {
      // Some servers do not trust this one.
      await tenant.put(world.database, 'orders', { extensions: ['citext', 'pg_trgm'] });
      expect(await tenant.pass(world.database, 'orders')).toMatchObject(READY);
    }
    await tenant.put(world.database, 'orders', {});
    expect(await tenant.pass(world.database, 'orders')).toMatchObject(READY);
    const extensions = await world.sql('select extname from pg_extension', name);
    expect(extensions.map(({ extname }) => String(extname))).toContain('citext');
  });

  test.each(['file_fdw', 'no_such_extension'])(
    'is not ready for good with the extension %s, and usable',
    async (extension) => {
      const tenant = await mighty.newTenant();
      await tenant.put(mighty.database, 'orders', { extensions: ['citext', extension] });
      const pass = await tenant.settle(mighty.database, 'orders');
      expect(pass.result).toBe('terminal');
      expect(pass.error).toContain(`ExtensionRefused: spec.extensions: extension "${extension}" cannot be had`);
      expect(await tenant.condition(mighty.database, 'orders', 'Ready')).toBe('False ExtensionRefused');
      const session = await mighty.enter(tenant, 'orders');
      await session`create table usable (name citext)`;
      await session.end();
    },
  );

  test('is out of reach for whoever made it, but for its owner', async () => {
    const one = await make();
    const other = await make();
    const session = world.connect(one.name, other.owner, other.password);
    await expect(session`select`).rejects.toMatchObject({ code: '42501' });
    await session.end();
  });

  test('cannot lie on a server that is not configured', async () => {
    const tenant = await world.newTenant();
    await tenant.put(world.database, 'orders', { server: 'nowhere' });
    expect(await tenant.settle(world.database, 'orders')).toMatchObject({
      result: 'terminal',
      error: 'UnknownServer: spec.server is "nowhere"; there are: local, other',
    });
  });

  test.each([{ server: 'other' }, { owner: 'boss' }])('cannot move: %j', async (change) => {
    const { tenant, name, owner } = await make();
    await tenant.put(world.database, 'orders', change);
    const pass = await tenant.pass(world.database, 'orders');
    expect(pass.result).toBe('terminal');
    expect(pass.error).toMatch(/^ImmutableField: spec\.(server|owner) cannot change: .* set spec\.(server|owner) back/);
    expect(await databaseRow(name)).toMatchObject({ owner });
    await tenant.put(world.database, 'orders', {});
    expect(await tenant.settle(world.database, 'orders')).toMatchObject(READY);
  });
});

describe("the owner's password", () => {
  test('is another one for each new rotation token, and only then', async () => {
    const { tenant, name, owner, password } = await make();
    const next = async (rotationToken?: string): Promise<string> => {
      await tenant.put(world.database, 'orders', rotationToken === undefined ? {} : { rotationToken });
      expect(await tenant.pass(world.database, 'orders')).toMatchObject(READY);
      return tenant.text(world.database, 'orders', 'password');
    };
    const second = await next('a');
    expect(second).not.toBe(password);
    expect([await next('a'), await next(), await next('a')]).toEqual([second, second, second]);
    const third = await next('b');
    expect(third).not.toBe(second);
    const old = world.connect(name, owner, second);
    await expect(old`select`).rejects.toMatchObject({ code: '28P01' });
    await old.end();
    const session = world.connect(name, owner, third);
    await session`select`;
    await session.end();
  });

  test('is in no statement that the server sees', async () => {
    const { owner, password } = await make();
    const [row] = await world.sql(`select rolpassword from pg_authid where rolname = '${owner}'`);
    expect(row?.['rolpassword']).toMatch(/^SCRAM-SHA-256\$4096:/);
    expect(row?.['rolpassword']).not.toContain(password);
  });
});

describe('what belongs to somebody else', () => {
  test.each([
    ['database', 'create database %d', "comment on database %d is 'theirs'"],
    ['role', 'create role %o', "comment on role %o is 'theirs'"],
  ])('a %s of that name is left as it is', async (what, create, comment) => {
    const tenant = await world.newTenant();
    const fill = (text: string): string =>
      text.replace('%d', `"${tenant.tenant}_orders"`).replace('%o', `"${tenant.tenant}_orders_owner"`);
    await world.sql(fill(create));
    await world.sql(fill(comment));
    await tenant.put(world.database, 'orders', {});
    const pass = await tenant.settle(world.database, 'orders');
    expect(pass.error).toMatch(
      new RegExp(`^OwnershipConflict: ${what} "${tenant.tenant}_orders.*" on server "local" is there`),
    );
    const conflict = await tenant.condition(world.database, 'orders', 'OwnershipConflict');
    expect(conflict).toBe('True OwnershipConflict');
    expect([await databaseRow(`${tenant.tenant}_orders`), await roleRow(`${tenant.tenant}_orders_owner`)]).toEqual([
      what === 'database' ? expect.objectContaining({ comment: 'theirs', owner: 'plumbline' }) : undefined,
      what === 'role' ? expect.objectContaining({ comment: 'theirs', rolcanlogin: false }) : undefined,
    ]);
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await world.sql(`select from pg_database where datname = '${tenant.tenant}_orders'`)).toHaveLength(
      what === 'database' ? 1 : 0,
    );
  });

  test('another owner may be chosen when the first one turned out to be taken', async () => {
    const tenant = await world.newTenant();
    await world.sql(`create role "${tenant.tenant}_orders_owner"`);
    await tenant.put(world.database, 'orders', {});
    await tenant.settle(world.database, 'orders');
    await tenant.put(world.database, 'orders', { owner: 'free' });
    expect(await tenant.settle(world.database, 'orders')).toMatchObject(READY);
    expect(await databaseRow(`${tenant.tenant}_orders`)).toMatchObject({ owner: `${tenant.tenant}_free_owner` });
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await roleRow(`${tenant.tenant}_orders_owner`)).toBeDefined();
  });

  test('a database is adopted where the spec says so, unless another object has marked it', async () => {
    const tenant = await mighty.newTenant();
    const name = `${tenant.tenant}_orders`;
    await world.sql(`create database "${name}"`);
    await world.sql('create table theirs ()', name);
    await tenant.put(mighty.database, 'orders', { adoptionPolicy: 'AdoptUnowned', extensions: ['citext'] });
    expect(await tenant.settle(mighty.database, 'orders')).toMatchObject(READY);
    expect(await databaseRow(name)).toMatchObject({ owner: `${name}_owner`, isOpen: false, hasOwner: true });
    expect(await world.sql(`select from pg_class where relname = 'theirs'`, name)).toHaveLength(1);
    await world.sql(`comment on database "${name}" is 'plumbline:elsewhere/plumbline.dev/ManagedDatabase/1'`);
    const pass = await tenant.pass(mighty.database, 'orders');
    expect(pass.error).toContain('OwnershipConflict');
    expect(pass.error).toContain('it bears the marker of another object');
  });

  test('two objects of a tenant never share an owner', async () => {
    const { tenant } = await make({ owner: 'shared' });
    await tenant.put(world.database, 'bills', { owner: 'shared' });
    expect((await tenant.settle(world.database, 'bills')).error).toMatch(/^OwnershipConflict: role/);
    expect(await databaseRow(`${tenant.tenant}_bills`)).toBeUndefined();
  });
});
