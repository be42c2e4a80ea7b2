import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

let world: DatabaseWorld;

beforeAll(async () => {
  world = await openDatabaseWorld();
});

afterAll(() => world.close());

const READY = { result: 'done', error: undefined };
const TABLES = `create schema shop; create table shop.items (id serial primary key, name text); create table plain (n int)`;

/** A tenant with a database that has tables. */
async function makeTenant(...databases: readonly string[]): Promise<TenantPasses> {
  const tenant = await world.newTenant();
  for (const name of databases.length > 0 ? databases : ['orders']) {
    await tenant.put(world.database, name, {});
    expect(await tenant.settle(world.database, name)).toMatchObject(READY);
    await asOwner(tenant, TABLES, name);
  }
  return tenant;
}

async function asOwner(tenant: TenantPasses, text: string, name: string = 'orders'): Promise<void> {
  const session = await world.enter(tenant, name);
  await session.unsafe(text);
  await session.end();
}

async function bind(
  tenant: TenantPasses,
  name: string,
  role: string,
  { subject = 'ann', database = 'orders' }: { readonly subject?: string; readonly database?: string } = {},
): Promise<void> {
  await tenant.put(world.binding, name, { database, subject, role });
  expect(await tenant.settle(world.binding, name)).toMatchObject(READY);
}

async function unbind(tenant: TenantPasses, name: string): Promise<void> {
  await tenant.remove(world.binding, name);
  expect(await tenant.pass(world.binding, name)).toMatchObject({ result: 'finalized', error: undefined });
}

/** What a subject may do in a database: tried as a superuser who takes its place. */
async function can(tenant: TenantPasses, subject: string = 'ann', name: string = 'orders'): Promise<readonly string[]> {
  const role = `${tenant.tenant}_${subject}`;
  const [row] = await world.sql(
    `select case when exists (select from pg_roles where rolname = '${role}') then array_to_json(array_remove(array[
      case when has_database_privilege('${role}', current_database(), 'connect') then 'connect' end,
      case when has_table_privilege('${role}', 'shop.items', 'select') and has_schema_privilege('${role}', 'shop', 'usage') then 'read' end,
      case when has_table_privilege('${role}', 'shop.items', 'insert') and has_sequence_privilege('${role}', 'shop.items_id_seq', 'usage') then 'write' end,
      case when has_table_privilege('${role}', 'shop.items', 'truncate') then 'own' end], null)) end as can`,
    `${tenant.tenant}_${name}`,
  );
  return (row?.['can'] as readonly string[] | null) ?? ['nothing, for there is no such role'];
}

async function commentOf(role: string): Promise<unknown> {
  const [row] = await world.sql(
    `select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = '${role}'`,
  );
  return row?.['comment'];
}

describe('a RoleBinding', () => {
  test.each([
    ['reader', ['connect', 'read']],
    ['writer', ['connect', 'read', 'write']],
    ['owner', ['connect', 'read', 'write', 'own']],
  ])('makes the subject a %s', async (role, rights) => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', role);
    expect(await can(tenant)).toEqual(rights);
    const resources = [
      { class: 'rights', id: `local/${tenant.tenant}_orders/${tenant.tenant}_ann`, state: 'present' },
      { class: 'role', id: `local/${tenant.tenant}_ann`, state: 'present' },
    ];
    expect(await tenant.status(world.binding, 'a')).toMatchObject({ resources });
    expect(await commentOf(`${tenant.tenant}_ann`)).toBe(
      `plumbline:${tenant.installation}/plumbline.dev/Tenant/${tenant.tenantUid}`,
    );
    expect(await tenant.pass(world.binding, 'a')).toMatchObject({ ...READY, events: [] });
    await unbind(tenant, 'a');
    expect(await can(tenant)).toEqual(['nothing, for there is no such role']);
  });

  test('reaches tables that the owner makes later, and those of schemas that it makes later', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'writer');
    await asOwner(tenant, 'create schema late; create table late.things (id serial); create table later (id serial)');
    const session = await world.sql(
      `select has_table_privilege('${tenant.tenant}_ann', 'late.things', 'insert') as late,
        has_schema_privilege('${tenant.tenant}_ann', 'late', 'usage') as schema,
        has_sequence_privilege('${tenant.tenant}_ann', 'later_id_seq', 'usage') as later`,
      `${tenant.tenant}_orders`,
    );
    expect({ ...session[0] }).toEqual({ late: true, schema: true, later: true });
  });

  test('has rights that were taken by hand given again, and such as were given taken', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'reader');
    const ann = `"${tenant.tenant}_ann"`;
    await asOwner(tenant, `revoke select on shop.items from ${ann}; grant insert, truncate on plain to ${ann}`);
    await world.sql(
      `revoke connect on database "${tenant.tenant}_orders" from ${ann}; alter role ${ann} createdb nologin`,
    );
    expect((await tenant.pass(world.binding, 'a')).error).toBeUndefined();
    expect(await can(tenant)).toEqual(['connect', 'read']);
    const [row] = await world.sql(
      `select has_table_privilege('${tenant.tenant}_ann', 'plain', 'insert') as insert, rolcreatedb, rolcanlogin
        from pg_roles where rolname = '${tenant.tenant}_ann'`,
      `${tenant.tenant}_orders`,
    );
    expect({ ...row }).toEqual({ insert: false, rolcreatedb: false, rolcanlogin: true });
  });

  test('gives the role again when it was dropped by hand', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'reader');
    await world.sql(
      `drop owned by "${tenant.tenant}_ann"; drop role "${tenant.tenant}_ann"`,
      `${tenant.tenant}_orders`,
    );
    expect(await tenant.pass(world.binding, 'a')).toMatchObject(READY);
    expect(await can(tenant)).toEqual(['connect', 'read']);
  });

  test('follows a change of its role, up and down', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'reader');
    await bind(tenant, 'a', 'owner');
    expect(await can(tenant)).toContain('own');
    await bind(tenant, 'a', 'writer');
    expect(await can(tenant)).toEqual(['connect', 'read', 'write']);
  });

  test('follows a change of its subject and of its database', async () => {
    const tenant = await makeTenant('orders', 'bills');
    await bind(tenant, 'a', 'reader');
    await bind(tenant, 'a', 'reader', { subject: 'bob' });
    expect([await can(tenant, 'ann'), await can(tenant, 'bob')]).toEqual([
      ['nothing, for there is no such role'],
      ['connect', 'read'],
    ]);
    await bind(tenant, 'a', 'reader', { subject: 'bob', database: 'bills' });
    expect([await can(tenant, 'bob'), await can(tenant, 'bob', 'bills')]).toEqual([[], ['connect', 'read']]);
    expect((await tenant.status(world.binding, 'a'))['places']).toHaveLength(1);
    await unbind(tenant, 'a');
    expect(await can(tenant, 'bob', 'bills')).toEqual(['nothing, for there is no such role']);
  });

  test('waits for its database, and says so', async () => {
    const tenant = await world.newTenant();
    await tenant.put(world.binding, 'a', { database: 'orders', subject: 'ann', role: 'reader' });
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'not-ready' });
    expect(await tenant.condition(world.binding, 'a', 'Ready')).toBe('False DatabaseNotReady');
    await tenant.put(world.database, 'orders', {});
    await tenant.pass(world.database, 'orders');
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'not-ready' });
    expect(await commentOf(`${tenant.tenant}_ann`)).toBeUndefined();
    await tenant.settle(world.database, 'orders');
    expect(await tenant.settle(world.binding, 'a')).toMatchObject(READY);
    await tenant.put(world.database, 'orders', { connectionLimit: 5 });
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'not-ready' });
  });

  test('is woken by its database', async () => {
    const [tenant, other] = [await world.newTenant(), await world.newTenant()];
    await tenant.put(world.binding, 'a', { database: 'orders', subject: 'ann', role: 'reader' });
    await tenant.put(world.binding, 'b', { database: 'bills', subject: 'ann', role: 'reader' });
    await other.put(world.binding, 'a', { database: 'orders', subject: 'ann', role: 'reader' });
    expect(await tenant.woken(world.binding)).toEqual([]);
    await tenant.put(world.database, 'orders', {});
    expect(await tenant.woken(world.binding)).toEqual(['a']);
    await other.put(world.database, 'bills', {});
    expect([await other.woken(world.binding), await tenant.woken(world.binding)]).toEqual([[], []]);
  });

  test('that lost its database has only the role to look after', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'writer');
    await world.sql(`drop database "${tenant.tenant}_orders"`);
    expect(await tenant.pass(world.binding, 'a')).toMatchObject({ result: 'not-ready' });
    await unbind(tenant, 'a');
    expect(await commentOf(`${tenant.tenant}_ann`)).toBeUndefined();
  });

  test('gives nothing in a database that is another one now', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'writer');
    await world.sql(`comment on database "${tenant.tenant}_orders" is 'theirs'`);
    expect(await tenant.pass(world.binding, 'a')).toMatchObject({ result: 'not-ready' });
  });
});

describe('bindings of one subject', () => {
  test('come to the union of what each gives, until the last one goes', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'reader');
    await bind(tenant, 'b', 'writer');
    expect(await can(tenant)).toEqual(['connect', 'read', 'write']);
    expect(await tenant.pass(world.binding, 'a')).toMatchObject({ ...READY, events: [] });
    await unbind(tenant, 'b');
    expect(await can(tenant)).toEqual(['connect', 'read']);
    await unbind(tenant, 'a');
    expect(await can(tenant)).toEqual(['nothing, for there is no such role']);
  });

  test('on two databases share the role, which stays as long as one of them does', async () => {
    const tenant = await makeTenant('orders', 'bills');
    await bind(tenant, 'a', 'owner');
    await bind(tenant, 'b', 'reader', { database: 'bills' });
    await world.sql(`set role "${tenant.tenant}_ann"; create table public.anns ()`, `${tenant.tenant}_orders`);
    await unbind(tenant, 'a');
    expect([await can(tenant), await can(tenant, 'ann', 'bills')]).toEqual([[], ['connect', 'read']]);
    const [row] = await world.sql(
      `select relowner::regrole::text as owner from pg_class where relname = 'anns'`,
      `${tenant.tenant}_orders`,
    );
    expect(row?.['owner']).toBe(`${tenant.tenant}_orders_owner`);
    await unbind(tenant, 'b');
    expect(await commentOf(`${tenant.tenant}_ann`)).toBeUndefined();
  });

  test('that are deleted together leave no role behind, whatever their order', async () => {
    const tenant = await makeTenant('orders', 'bills');
    await bind(tenant, 'a', 'owner');
    await bind(tenant, 'b', 'writer', { database: 'bills' });
    await tenant.remove(world.binding, 'a');
    await tenant.remove(world.binding, 'b');
    const passes = await Promise.all(['a', 'b'].map((name) => tenant.pass(world.binding, name)));
    // Whoever is first waits for the other.
    expect(passes.map(({ result }) => result).toSorted()).toEqual(['blocked', 'finalized']);
    expect(await commentOf(`${tenant.tenant}_ann`)).toBeUndefined();
    const first = passes[0]?.result === 'blocked' ? 'a' : 'b';
    expect(await tenant.pass(world.binding, first)).toMatchObject({ result: 'finalized', error: undefined });
  });

  test('that change at once never undo each other', async () => {
    const tenant = await makeTenant();
    const names = ['a', 'b', 'c', 'd'];
    for (const [index, name] of names.entries()) {
      await tenant.put(world.binding, name, {
        database: 'orders',
        subject: 'ann',
        role: index === 3 ? 'writer' : 'reader',
      });
    }
    const settled = await Promise.all(names.map((name) => tenant.settle(world.binding, name)));
    expect(settled.map(({ error }) => error)).toEqual([undefined, undefined, undefined, undefined]);
    expect(await can(tenant)).toEqual(['connect', 'read', 'write']);
    await tenant.remove(world.binding, 'd');
    await Promise.all(names.map((name) => tenant.pass(world.binding, name)));
    expect(await can(tenant)).toEqual(['connect', 'read']);
  });

  test('whose list cannot be had change nothing', async () => {
    const tenant = await makeTenant();
    await bind(tenant, 'a', 'reader');
    await bind(tenant, 'b', 'writer');
    await tenant.remove(world.binding, 'b');
    const beforeList = (): Promise<void> => Promise.reject(new Error('the store is away'));
    expect((await tenant.pass(world.binding, 'b', { beforeList })).error).toContain('the store is away');
    expect(await can(tenant)).toEqual(['connect', 'read', 'write']);
    expect(await tenant.pass(world.binding, 'b')).toMatchObject({ result: 'finalized' });
    expect(await can(tenant)).toEqual(['connect', 'read']);
  });
});

test("bindings of many subjects on one database that change at once do not get into each other's way", async () => {
  const tenant = await makeTenant();
  const subjects = ['ann', 'bob', 'cid', 'dee', 'eve', 'fay'];
  for (let round = 0; round < 15; round++) {
    const role = ['writer', 'reader', 'owner'][round % 3] ?? '';
    for (const subject of subjects) await tenant.put(world.binding, subject, { database: 'orders', subject, role });
    const settled = await Promise.all(subjects.map((name) => tenant.settle(world.binding, name)));
    expect(settled.map(({ error }) => error)).toEqual(subjects.map(() => undefined));
  }
  for (const name of subjects) await tenant.remove(world.binding, name);
  const gone = await Promise.all(subjects.map((name) => tenant.pass(world.binding, name)));
  expect(gone.map(({ error }) => error)).toEqual(subjects.map(() => undefined));
});

describe('a role that was there before', () => {
  test('gets rights, and is neither changed nor dropped', async () => {
    const tenant = await makeTenant();
    const ann = `${tenant.tenant}_ann`;
    await world.sql(`create role "${ann}" createdb nologin`);
    await bind(tenant, 'a', 'writer');
    expect(await can(tenant)).toEqual(['connect', 'read', 'write']);
    await unbind(tenant, 'a');
    expect(await can(tenant)).toEqual([]);
    const [row] = await world.sql(`select rolcreatedb, rolcanlogin from pg_roles where rolname = '${ann}'`);
    expect({ ...row }).toEqual({ rolcreatedb: true, rolcanlogin: false });
    expect(await commentOf(ann)).toBeNull();
  });

  test('and was made for another tenant of this name gets none, and stays', async () => {
    const tenant = await makeTenant();
    const ann = `${tenant.tenant}_ann`;
    const theirs = `plumbline:${tenant.installation}/plumbline.dev/Tenant/4f0e9d4e-0000-4000-8000-000000000000`;
    await world.sql(`create role "${ann}"`);
    await world.sql(`comment on role "${ann}" is '${theirs}'`);
    await tenant.put(world.binding, 'a', { database: 'orders', subject: 'ann', role: 'owner' });
    expect((await tenant.settle(world.binding, 'a')).error).toMatch(
      /^OwnershipConflict: role ".*_ann" on server "local"/,
    );
    expect(await can(tenant)).toEqual([]);
    await unbind(tenant, 'a');
    expect(await commentOf(ann)).toBe(theirs);
  });
});
