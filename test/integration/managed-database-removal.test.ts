import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

let world: DatabaseWorld;

beforeAll(async () => {
  world = await openDatabaseWorld();
});

afterAll(() => world.close());

async function make(spec: Parameters<TenantPasses['put']>[2] = {}): Promise<TenantPasses> {
  const tenant = await world.newTenant();
  await tenant.put(world.database, 'orders', spec);
  expect(await tenant.settle(world.database, 'orders')).toMatchObject({ result: 'done', error: undefined });
  return tenant;
}

/** What of the tenant is on the server: databases, drafts and roles. */
async function left({ tenant, installation }: TenantPasses): Promise<readonly string[]> {
  const rows = await world.sql(`
    select datname as name from pg_database where datname like '${tenant}\\_%'
      or shobj_description(oid, 'pg_database') like 'plumbline:${installation}/%' and datname like 'plumbline\\_%'
    union all select rolname from pg_roles where rolname like '${tenant}\\_%' order by 1`);
  return rows.map(({ name }) => String(name));
}

/** A session of the owner's, which is connected. */
async function enter(tenant: TenantPasses): Promise<ReturnType<DatabaseWorld['connect']>> {
  const session = await world.enter(tenant, 'orders');
  await session`select`;
  return session;
}

describe('a ManagedDatabase that is deleted', () => {
  test('is gone with its owner, and what the owner had in it', async () => {
    const tenant = await make({ extensions: ['citext'] });
    const owner = await enter(tenant);
    await owner`create table things ()`;
    await owner.end();
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([]);
  });

  test('is gone also when dropping it was interrupted, which leaves one that nobody can enter', async () => {
    const tenant = await make();
    await world.sql(`update pg_database set datconnlimit = -2 where datname = '${tenant.tenant}_orders'`);
    expect((await tenant.pass(world.database, 'orders')).error).toContain('finish it there: drop database');
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized', error: undefined });
    expect(await left(tenant)).toEqual([]);
  });

  test('needs no server when nothing was ever to be made', async () => {
    const tenant = await world.newTenant();
    await tenant.put(world.database, 'orders', { server: 'nowhere' });
    await tenant.settle(world.database, 'orders');
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
  });

  test('waits for the RoleBindings that name it, those that are being deleted too', async () => {
    const tenant = await make();
    await tenant.put(world.binding, 'ann', { database: 'orders', subject: 'ann', role: 'reader' });
    await tenant.put(world.binding, 'elsewhere', { database: 'bills', subject: 'ann', role: 'reader' });
    await tenant.remove(world.database, 'orders');
    const blocked = { result: 'blocked' };
    expect(await tenant.pass(world.database, 'orders')).toMatchObject(blocked);
    const message = JSON.stringify((await tenant.status(world.database, 'orders'))['conditions']);
    expect(message).toContain('the database is named by RoleBindings: ann; delete them');
    await tenant.remove(world.binding, 'ann');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject(blocked);
    expect(await tenant.pass(world.binding, 'ann')).toMatchObject({ result: 'finalized' });
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
  });

  test('stays open for bindings that have to go first, whoever shuts it meanwhile', async () => {
    const tenant = await make();
    await tenant.put(world.binding, 'ann', { database: 'orders', subject: 'ann', role: 'reader' });
    expect(await tenant.settle(world.binding, 'ann')).toMatchObject({ error: undefined });
    await tenant.remove(world.database, 'orders');
    await tenant.remove(world.binding, 'ann');
    await world.sql(`alter database "${tenant.tenant}_orders" allow_connections false`);
    expect((await tenant.pass(world.binding, 'ann')).error).toContain('not currently accepting connections');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'blocked' });
    expect(await tenant.pass(world.binding, 'ann')).toMatchObject({ result: 'finalized' });
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([]);
  });

  test('wakes up for bindings that go', async () => {
    const tenant = await make();
    await tenant.put(world.binding, 'ann', { database: 'orders', subject: 'ann', role: 'reader' });
    expect(await tenant.settle(world.binding, 'ann')).toMatchObject({ result: 'done' });
    expect(await tenant.woken(world.database)).toEqual([]);
    await tenant.remove(world.binding, 'ann');
    expect(await tenant.woken(world.database)).toEqual(['orders']);
    expect(await tenant.pass(world.binding, 'ann')).toMatchObject({ result: 'finalized' });
    expect(await tenant.woken(world.database)).toEqual(['orders']);
  });

  test('waits while sessions are connected, and looks again soon', async () => {
    const tenant = await make();
    const session = await enter(tenant);
    await tenant.remove(world.database, 'orders');
    const pass = await tenant.pass(world.database, 'orders');
    expect(pass).toMatchObject({ result: 'blocked', nextMs: 5_000 });
    expect(await tenant.condition(world.database, 'orders', 'Ready')).toBe('False Deleting');
    expect(await left(tenant)).toHaveLength(2);
    await session.end();
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([]);
  });

  test('ends the sessions where the spec says so', async () => {
    const tenant = await make({ force: true });
    const session = await enter(tenant);
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([]);
    await session.end({ timeout: 0 });
  });

  test('ends the sessions where somebody says so who has found them in the way', async () => {
    const tenant = await make();
    const session = await enter(tenant);
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'blocked' });
    const message = JSON.stringify((await tenant.status(world.database, 'orders'))['conditions']);
    expect(message).toContain('the annotation plumbline.dev/force: ');
    await tenant.annotate(world.database, 'orders', { 'plumbline.dev/force': 'false' });
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'blocked' });
    await session`select`;
    await tenant.annotate(world.database, 'orders', { 'plumbline.dev/force': 'true' });
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([]);
    await session.end({ timeout: 0 });
  });

  test('stays with its owner where the spec says so, and is nobody’s', async () => {
    const tenant = await make({ deletionPolicy: 'Retain' });
    const session = await enter(tenant);
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([`${tenant.tenant}_orders`, `${tenant.tenant}_orders_owner`]);
    expect(
      await session`select shobj_description(oid, 'pg_database') as comment from pg_database
      where datname = current_database()`,
    ).toEqual([{ comment: null }]);
    await session.end();
  });

  test('is nobody’s only when bindings that have moved away have taken back their rights', async () => {
    const tenant = await make({ deletionPolicy: 'Retain' });
    await tenant.put(world.binding, 'ann', { database: 'orders', subject: 'ann', role: 'owner' });
    expect(await tenant.settle(world.binding, 'ann')).toMatchObject({ result: 'done' });
    await tenant.put(world.binding, 'ann', { database: 'bills', subject: 'ann', role: 'owner' });
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'blocked' });
    expect(JSON.stringify((await tenant.status(world.database, 'orders'))['conditions'])).toContain(
      'RoleBindings have not taken back their rights yet: ann',
    );
    await tenant.settle(world.binding, 'ann');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([`${tenant.tenant}_orders`, `${tenant.tenant}_orders_owner`]);
  });

  test.each([
    ['database', 'comment on database %d is null'],
    ['database', "comment on database %d is 'plumbline:other/plumbline.dev/ManagedDatabase/1'"],
    ['role', 'comment on role %o is null'],
  ])('leaves a %s that is not its own any more: %s', async (what, change) => {
    const tenant = await make();
    const name = `${tenant.tenant}_orders`;
    await world.sql(change.replace('%d', `"${name}"`).replace('%o', `"${name}_owner"`));
    if (what === 'database') await world.sql(`alter database "${name}" owner to plumbline`);
    await tenant.remove(world.database, 'orders');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
    expect(await left(tenant)).toEqual([what === 'database' ? name : `${name}_owner`]);
  });

  test('tells what its owner has elsewhere, and waits until that is gone', async () => {
    const tenant = await make();
    const owner = `"${tenant.tenant}_orders_owner"`;
    await world.sql(
      `create table kept_${tenant.tenant} (); grant select on kept_${tenant.tenant} to ${owner}`,
      'postgres',
    );
    await tenant.remove(world.database, 'orders');
    const pass = await tenant.pass(world.database, 'orders');
    expect(pass.error).toContain(`privileges for table public.kept_${tenant.tenant}; revoke or reassign that`);
    await world.sql(`drop table kept_${tenant.tenant}`, 'postgres');
    expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'finalized' });
  });
});

describe('orphans', () => {
  test('are found by the marker of the installation, and removed if they still bear it', async () => {
    const tenant = await make();
    const sweep = world.database.controllers[0]?.sweep;
    const ctx = { installation: tenant.installation, signal: new AbortController().signal, log: console as never };
    const uid = (await tenant.read(world.database, 'orders'))?.metadata.uid ?? '';
    expect(sweep?.parts).toEqual(['local', 'other']);
    const found = (await sweep?.list(ctx, 'local'))?.filter(({ ownerUid }) => ownerUid === uid);
    expect(found).toEqual([
      { class: 'database', id: `local/${tenant.tenant}_orders`, ownerUid: uid },
      { class: 'role', id: `local/${tenant.tenant}_orders_owner`, ownerUid: uid },
    ]);
    await world.sql(`comment on database "${tenant.tenant}_orders" is 'somebody else'`);
    await expect(sweep?.remove(found?.[0] as never, ctx)).rejects.toThrow('does not bear our marker any more');
    await world.sql(`drop database "${tenant.tenant}_orders"`);
    for (const orphan of found ?? [])
      await sweep?.remove(orphan, { ...ctx, log: { ...console, info: () => undefined } as never });
    expect(await left(tenant)).toEqual([]);
  });
});
