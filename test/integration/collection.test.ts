import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import { collectAll } from '#functions/reconcile/collect.ts';
import {
  addObject,
  collectUntilQuiet,
  ownersByName,
  remove,
  setOwners,
  startCollector,
} from '#test/support/owned-objects.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { untilLockWaits } from '#test/support/lock-waits.ts';
import { prepareReconciling, probeKind } from '#test/support/reconciling.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

let database: PreparedDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
  ({ sql } = database);
});

afterEach(async () => {
  await sql`update plumbline.resource set finalizers = '{}' where tenant = 'acme' and finalizers <> '{}'`;
  await sql`delete from plumbline.resource where tenant = 'acme'`;
  await collectUntilQuiet(sql);
});

afterAll(() => database.close());

async function collectOnce(): Promise<void> {
  await sql`select plumbline.collect(100)`;
}

describe('an owner is read as it is at that moment', () => {
  test.each([
    ['stays when its owner stays', 'rollback', { child: ['owner'], owner: [] }],
    ['goes when its owner goes', 'commit', {}],
  ])('while its deletion is not yet committed nothing is decided; the dependent %s', async (_what, end, expected) => {
    await addObject(sql, 'owner');
    await addObject(sql, 'child', { owners: ['owner'] });
    await collectUntilQuiet(sql);
    await sql`insert into plumbline.owner_change (uid) select uid from plumbline.resource where name = 'child'`;
    const deleting = database.connection();
    await deleting`begin`;
    await deleting`delete from plumbline.resource where name = 'owner'`;
    await collectOnce();
    expect(await ownersByName(sql)).toEqual({ child: ['owner'], owner: [] });
    const waiting = await sql<{ problem: string | null }[]>`select problem from plumbline.owner_change`;
    expect(waiting).toEqual([{ problem: null }]);
    await deleting.unsafe(end);
    await collectUntilQuiet(sql);
    expect(await ownersByName(sql)).toEqual(expected);
  });

  test('a dependent whose creation commits after its owner has gone is collected', async () => {
    await addObject(sql, 'owner');
    const creating = database.connection();
    await creating`begin`;
    await addObject(creating, 'child', { owners: ['owner'] });
    await remove(sql, 'owner', 'Background');
    await collectUntilQuiet(sql);
    await creating`commit`;
    expect(await ownersByName(sql)).toEqual({ child: ['owner'] });
    await collectUntilQuiet(sql);
    expect(await ownersByName(sql)).toEqual({});
  });

  test('a dependent that somebody else writes is left alone until that is over, and who collects does not wait', async () => {
    await addObject(sql, 'owner');
    await addObject(sql, 'kept', { owners: ['owner'] });
    await addObject(sql, 'other', { owners: ['owner'] });
    const writing = database.connection();
    await writing`begin`;
    await setOwners(writing, 'kept', []);
    await remove(sql, 'owner', 'Background');
    await collectOnce();
    await collectOnce();
    expect(Object.keys(await ownersByName(sql))).toEqual(['kept']);
    await writing`commit`;
    await collectUntilQuiet(sql);
    expect(await ownersByName(sql)).toEqual({ kept: [] });
  });

  test('an adoption waits for a deletion that is being requested, and is refused then', async () => {
    await addObject(sql, 'owner', { finalizers: ['example.dev/a'] });
    await addObject(sql, 'child');
    const deleting = database.connection();
    await deleting`begin`;
    await remove(deleting, 'owner', 'Background');
    const adopting = refusalOf(setOwners(sql, 'child', ['owner']));
    await untilLockWaits(sql);
    await deleting`commit`;
    expect((await adopting).code).toBe('PL409');
  });
});

test('the sweep finds dependents of owners that went before anybody looked', async () => {
  const uid = await addObject(sql, 'owner');
  await addObject(sql, 'child', { owners: ['owner'] });
  await addObject(sql, 'free');
  await collectUntilQuiet(sql);
  const silent = database.connection();
  await silent`begin`;
  await silent`set local session_replication_role = replica`;
  await silent`delete from plumbline.resource where uid = ${uid}`;
  await silent`commit`;
  const upkeep = postgresWorkUpkeep(sql);
  expect(await collectAll(upkeep)).toBe(0);
  await upkeep.sweepOwners();
  await collectUntilQuiet(sql);
  expect(await ownersByName(sql)).toEqual({ free: [] });
});

test('the sweep takes up deletions whose collector forgot them', async () => {
  await addObject(sql, 'waiting');
  await addObject(sql, 'orphaning');
  await addObject(sql, 'child', { owners: ['orphaning'] });
  await addObject(sql, 'late', { owners: ['waiting'] });
  await remove(sql, 'waiting', 'Foreground');
  await remove(sql, 'orphaning', 'Orphan');
  await sql`delete from plumbline.owner_change`;
  await postgresWorkUpkeep(sql).sweepOwners();
  await collectUntilQuiet(sql);
  expect(await ownersByName(sql)).toEqual({ child: [] });
});

test('dependents that are left behind change once each, and nothing else does', async () => {
  await addObject(sql, 'owner');
  for (const name of ['a', 'b', 'c']) await addObject(sql, name, { owners: ['owner'] });
  await collectUntilQuiet(sql);
  await sql`delete from plumbline.outbox`;
  await remove(sql, 'owner', 'Orphan');
  await collectUntilQuiet(sql);
  const events = await sql<{ said: string }[]>`
    select type || ' ' || name as said from plumbline.outbox where tenant = 'acme' order by id`;
  expect(events.map(({ said }) => said)).toEqual(
    ['MODIFIED owner', 'MODIFIED a', 'MODIFIED b', 'MODIFIED c', 'DELETED owner'].toSorted(
      (a, b) => places(a) - places(b),
    ),
  );

  function places(said: string): number {
    return events.findIndex((event) => event.said === said);
  }
});

test('many dependents go in small transactions, by several collectors at once', async () => {
  await addObject(sql, 'owner');
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, owner_references)
    select 'acme', 'example.dev', 'Widget', 'child-' || n, (select jsonb_build_array(jsonb_build_object(
      'apiVersion', 'example.dev/v1', 'kind', 'Widget', 'name', name, 'uid', uid))
      from plumbline.resource where name = 'owner') from generate_series(1, 2500) n`;
  await collectUntilQuiet(sql);
  await remove(sql, 'owner', 'Background');
  const errors: unknown[] = [];
  const collectors = [0, 1, 2].map(() => startCollector(database.url, sql, (error) => errors.push(error)));
  await expect.poll(async () => Object.keys(await ownersByName(sql)).length, { timeout: 30_000 }).toBe(0);
  await Promise.all(collectors.map((collector) => collector.stop()));
  expect(errors).toEqual([]);
});

test('what cannot be deleted is told, and holds up nothing else', async () => {
  await addObject(sql, 'owner');
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, owner_references)
    select 'system', 'plumbline.dev', 'Tenant', 'owned-tenant', jsonb_build_array(jsonb_build_object('apiVersion',
      'plumbline.dev/v1', 'kind', 'Tenant', 'name', 'nobody', 'uid', gen_random_uuid()))`;
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values ('owned-tenant', 'example.dev', 'Widget', 'inside')`;
  await sql`update plumbline.resource set finalizers = '{}' where name = 'owned-tenant'`;
  await addObject(sql, 'child', { owners: ['owner'] });
  await remove(sql, 'owner', 'Background');
  for (let round = 0; round < 5; round++) await collectOnce();
  expect(await ownersByName(sql)).toEqual({});
  const problems = await sql<{ problem: string }[]>`
    select problem from plumbline.owner_change where problem is not null`;
  expect(problems).toEqual([{ problem: 'tenant "owned-tenant" still has objects; delete them first' }]);
  await sql`delete from plumbline.owner_change`;
});

describe('owners that wait for each other', () => {
  test('end when they are a cycle, also of hundreds', async () => {
    await addChain(300);
    await setOwners(sql, 'link-1', ['link-300']);
    await markForeground();
    await collectUntilQuiet(sql);
    expect(await ownersByName(sql)).toEqual({});
  });

  test('cost no more to look at, however many are behind one of them', async () => {
    await addChain(600);
    await sql`update plumbline.resource set finalizers = '{example.dev/held}' where name = 'link-600'`;
    await markForeground();
    expect(await looksOf('link-1')).toBeLessThan(10);
    // Of owners before it, as many as are looked at.
    expect(await looksOf('link-599')).toBeLessThan(550);
    expect(Object.keys(await ownersByName(sql))).toHaveLength(600);
  });

  /** How often the table of objects is looked into for one of them. */
  async function looksOf(name: string): Promise<number> {
    const looking = database.connection();
    await looking`begin`;
    const before = await looks();
    await looking`select plumbline.collect_one(uid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      from plumbline.resource where name = ${name}`;
    const after = await looks();
    await looking`commit`;
    return after - before;

    async function looks(): Promise<number> {
      const [row] = await looking<{ count: number }[]>`
        select (seq_scan + coalesce(idx_scan, 0))::integer as count from pg_stat_xact_user_tables
        where relid = 'plumbline.resource'::regclass`;
      return row?.count ?? 0;
    }
  }

  /** Each is the owner of the next. */
  async function addChain(length: number): Promise<void> {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      select 'acme', 'example.dev', 'Widget', 'link-' || n from generate_series(1, ${length}::integer) n`;
    await sql`update plumbline.resource d set owner_references = jsonb_build_array(jsonb_build_object('apiVersion',
        'example.dev/v1', 'kind', o.kind, 'name', o.name, 'uid', o.uid, 'blockOwnerDeletion', true))
      from plumbline.resource o where d.tenant = 'acme' and o.tenant = 'acme'
        and d.name = 'link-' || (substr(o.name, 6)::integer + 1)`;
  }

  async function markForeground(): Promise<void> {
    await sql`update plumbline.resource set deletion_timestamp = clock_timestamp(),
      finalizers = plumbline.propagation_finalizers(finalizers, 'Foreground') where tenant = 'acme'`;
  }
});

describe('beside controllers', () => {
  test('a change wakes a reconciler that sleeps: dependents go at once, and are finalized', async () => {
    const finalized: string[] = [];
    const child = probeKind('Child', {
      name: 'child',
      async finalize(ctx) {
        finalized.push(ctx.object.metadata.name);
        return { finalized: true };
      },
    });
    const world = await prepareReconciling([child, probeKind('Parent')]);
    try {
      const staying = world.driver({ kinds: [child] }).stay();
      await world.create('Parent', 'tree');
      const { uid } = (await world.get('Parent', 'tree'))?.metadata ?? {};
      const reference = { apiVersion: 'example.dev/v1', kind: 'Parent', name: 'tree', uid };
      await world.create('Child', 'leaf');
      await world.sql`update plumbline.resource set owner_references = ${JSON.stringify([reference])}::text::jsonb
        where name = 'leaf'`;
      await world.delete('Parent', 'tree');
      await expect.poll(() => world.get('Child', 'leaf'), { timeout: 15_000 }).toBeUndefined();
      expect(finalized).toEqual(['leaf']);
      await staying.stop();
    } finally {
      await world.close();
    }
  });

  test('a run that ends collects too, and finalizes what it has collected', async () => {
    const child = probeKind('Child', { name: 'child', finalize: async () => ({ finalized: true }) });
    const world = await prepareReconciling([child, probeKind('Parent')]);
    try {
      await world.create('Parent', 'tree');
      await world.create('Child', 'leaf');
      await world.sql`update plumbline.resource set owner_references = (select jsonb_build_array(jsonb_build_object(
        'apiVersion', 'example.dev/v1', 'kind', 'Parent', 'name', name, 'uid', uid)) from plumbline.resource
        where name = 'tree') where name = 'leaf'`;
      await world.delete('Parent', 'tree');
      await world.driver({ kinds: [child] }).run();
      expect(await world.get('Child', 'leaf')).toBeUndefined();
    } finally {
      await world.close();
    }
  });
});

test('every deletion that waits for long tells so, however many wait for longer', async () => {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
    select 'acme', 'example.dev', 'Widget', 'held-' || n, '{example.dev/held}' from generate_series(1, 1100) n`;
  await sql`update plumbline.resource set deletion_timestamp = clock_timestamp() where tenant = 'acme'`;
  // As if they had waited for long: the rules keep the time of a deletion.
  const backdating = database.connection();
  await backdating`begin`;
  await backdating`set local session_replication_role = replica`;
  await backdating`update plumbline.resource set deletion_timestamp = deletion_timestamp - interval '1 hour'
    where tenant = 'acme'`;
  await backdating`commit`;
  await postgresWorkUpkeep(sql).reportBlockedDeletions();
  const [row] = await sql<{ silent: number }[]>`select count(*)::integer as silent from plumbline.resource
    where tenant = 'acme' and not status @> '{"conditions":[{"type":"DeletionBlocked","status":"True"}]}'`;
  expect(row).toEqual({ silent: 0 });
});

test('a deletion that waits for long names each finalizer that remains, since when, and whose it is', async () => {
  const world = await prepareReconciling([
    probeKind('Probe', { name: 'probe', finalize: async () => ({ finalized: true }) }),
  ]);
  try {
    await world.create('Probe', 'blue');
    await world.sql`update plumbline.resource set finalizers = finalizers || '{gone.dev/x}'::text[] where name = 'blue'`;
    await world.delete('Probe', 'blue');
    await world.sql`select plumbline.report_blocked_deletions('0 seconds', null, 100)`;
    const { conditions } = await world.status('Probe', 'blue');
    expect(conditions).toMatchObject([
      {
        type: 'DeletionBlocked',
        reason: 'NoController',
        blockers: [
          { finalizer: 'example.dev/probe', controller: 'example.dev/probe', since: expect.stringMatching(/Z$/) },
          { finalizer: 'gone.dev/x', since: expect.stringMatching(/Z$/) },
        ],
      },
    ]);
  } finally {
    await world.close();
  }
});
