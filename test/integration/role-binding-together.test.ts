import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { OnePassOptions, PassDone } from '#test/support/one-pass.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

let world: DatabaseWorld;
let tenant: TenantPasses;

beforeAll(async () => {
  world = await openDatabaseWorld();
  tenant = await world.newTenant();
  for (const name of ['orders', 'bills', 'notes']) {
    await tenant.put(world.database, name, {});
    expect(await tenant.settle(world.database, name)).toMatchObject({ result: 'done' });
  }
});

afterAll(() => world.close());

interface Bound {
  readonly subject: string;
  readonly database?: string;
  readonly role?: string;
}

async function put(name: string, { subject, database = 'orders', role = 'reader' }: Bound): Promise<void> {
  await tenant.put(world.binding, name, { subject, database, role });
}

async function bind(name: string, bound: Bound): Promise<void> {
  await put(name, bound);
  expect(await tenant.settle(world.binding, name)).toMatchObject({ result: 'done', error: undefined });
}

async function pass(name: string, options?: OnePassOptions): Promise<PassDone> {
  return tenant.pass(world.binding, name, options);
}

async function unbind(name: string): Promise<void> {
  await tenant.remove(world.binding, name);
  expect(await tenant.settle(world.binding, name)).toMatchObject({ result: 'finalized', error: undefined });
}

/** Does something when the pass lists bindings for the first time. */
function onList(deed: () => Promise<void>): OnePassOptions {
  let isDone = false;
  return {
    async beforeList() {
      if (isDone) return;
      isDone = true;
      await deed();
    },
  };
}

async function isThere(subject: string): Promise<boolean> {
  const rows = await world.sql(`select from pg_roles where rolname = '${tenant.tenant}_${subject}'`);
  return rows.length > 0;
}

/** The databases, by their names in the tenant, that the subject can connect to. */
async function reaches(subject: string): Promise<readonly string[]> {
  const rows = await world.sql(`
    select split_part(datname, '_', 2) as name from pg_database where datname like '${tenant.tenant}\\_%'
      and has_database_privilege('${tenant.tenant}_${subject}', oid, 'connect') order by 1`);
  return rows.map(({ name }) => String(name));
}

test('a pass that froze between its decision and its statement leaves nothing once its binding is gone', async () => {
  const own = await openDatabaseWorld({ silenceMs: 1_000 });
  try {
    const frozen = await own.newTenant();
    await frozen.put(own.database, 'orders', {});
    expect(await frozen.settle(own.database, 'orders')).toMatchObject({ result: 'done' });
    await frozen.put(own.binding, 'a', { database: 'orders', subject: 'ann', role: 'reader' });
    expect(await frozen.pass(own.binding, 'a')).toMatchObject({ result: 'not-ready', nextMs: 0 });
    const wake = Promise.withResolvers<void>();
    const asleep = Promise.withResolvers<void>();
    // It has seen that there is no such role, and knows that it is to be made.
    const late = frozen.pass(own.binding, 'a', {
      async beforeList() {
        asleep.resolve();
        await wake.promise;
      },
    });
    await asleep.promise;
    await frozen.expireLeases();
    await frozen.remove(own.binding, 'a');
    await vi.waitFor(
      async () => expect(await frozen.pass(own.binding, 'a')).toMatchObject({ result: 'finalized', error: undefined }),
      { timeout: 20_000, interval: 50 },
    );
    expect(await frozen.read(own.binding, 'a')).toBeUndefined();
    wake.resolve();
    expect((await late).error).toContain('database server "local" cannot be reached');
    expect(await own.sql(`select from pg_roles where rolname = '${frozen.tenant}_ann'`)).toEqual([]);
  } finally {
    await own.close();
  }
});

describe('the role of a subject', () => {
  test('goes when its binding comes back to it while it is taken away, and leaves it again', async () => {
    await bind('a', { subject: 'ann' });
    await put('a', { subject: 'zoe' });
    expect(await pass('a')).toMatchObject({ result: 'not-ready', nextMs: 0 });
    expect(await isThere('ann')).toBe(true);
    await pass(
      'a',
      onList(() => put('a', { subject: 'ann' })),
    );
    await bind('a', { subject: 'zoe' });
    expect(await isThere('ann')).toBe(false);
    await unbind('a');
    expect(await isThere('zoe')).toBe(false);
  });

  test('goes when its binding comes back to it while it is taken away, and is deleted before its database is ready', async () => {
    await bind('a', { subject: 'bob', database: 'notes' });
    await put('a', { subject: 'zoe', database: 'notes' });
    await pass('a');
    await tenant.put(world.database, 'notes', { connectionLimit: 7 });
    await pass(
      'a',
      onList(() => put('a', { subject: 'bob', database: 'notes' })),
    );
    await unbind('a');
    expect(await isThere('bob')).toBe(false);
    await tenant.settle(world.database, 'notes');
  });

  test('stays without a break when its binding comes back to it before it is taken away', async () => {
    await bind('a', { subject: 'cid' });
    await put('a', { subject: 'zoe' });
    await pass('a');
    await put('a', { subject: 'cid' });
    const again = await pass('a');
    expect(again).toMatchObject({ result: 'not-ready', events: [] });
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'done', events: [] });
    expect((await tenant.status(world.binding, 'a'))['places']).toMatchObject([{ subject: 'cid' }]);
    await unbind('a');
    expect(await isThere('cid')).toBe(false);
  });

  test('is not left to a binding that has taken its rights back, and has not said so yet', async () => {
    await bind('a', { subject: 'dee' });
    await bind('b', { subject: 'dee', database: 'bills' });
    await put('b', { subject: 'zoe', database: 'bills' });
    await pass('b');
    await pass('b', {
      async beforeEnd() {
        await put('b', { subject: 'dee', database: 'bills' });
        await tenant.remove(world.binding, 'a');
        await pass('a');
      },
    });
    await bind('b', { subject: 'zoe', database: 'bills' });
    const left = await tenant.read(world.binding, 'a');
    if (left) expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'finalized' });
    expect(await isThere('dee')).toBe(false);
    await unbind('b');
  });

  test('goes with the last of two that leave together, though a right that was given by hand held both up', async () => {
    await bind('a', { subject: 'eve' });
    await bind('b', { subject: 'eve', database: 'bills' });
    const [eve, notes] = [`"${tenant.tenant}_eve"`, `${tenant.tenant}_notes`];
    await world.sql(`create table by_hand (); grant select on by_hand to ${eve}`, notes);
    await tenant.remove(world.binding, 'a');
    await tenant.remove(world.binding, 'b');
    const passes: PassDone[] = [];
    const first = await pass('a', { beforeEnd: async () => void passes.push(await pass('b')) });
    passes.unshift(first);
    expect(passes).toMatchObject([{ result: 'blocked' }, { result: 'blocked' }]);
    expect(await tenant.condition(world.binding, 'b', 'DeletionBlocked')).toBe('True RoleShared');
    expect(JSON.stringify(await tenant.status(world.binding, 'a'))).toContain(`1 object in database ${notes}`);
    await world.sql(`revoke select on by_hand from ${eve}`, notes);
    for (const name of ['a', 'b']) expect(await pass(name)).toMatchObject({ result: 'finalized' });
    expect(await isThere('eve')).toBe(false);
  });

  test('has no rights for a binding that has not begun yet, and is deleted before its database is ready', async () => {
    await bind('a', { subject: 'fay' });
    await bind('b', { subject: 'fay', database: 'bills' });
    await put('c', { subject: 'fay', role: 'writer' });
    expect(await pass('a')).toMatchObject({ result: 'done' });
    await unbind('a');
    await tenant.put(world.database, 'orders', { connectionLimit: 7 });
    await unbind('c');
    expect(await reaches('fay')).toEqual(['bills']);
    await tenant.settle(world.database, 'orders');
    await unbind('b');
    expect(await isThere('fay')).toBe(false);
  });
});
