/**
 * The second wall. Each query of the store runs here without its conditions on the tenant, as if they had been forgotten:
 * the module that makes them is replaced by one that makes none.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { postgresObjectEvents } from '#adapters/postgres/object-events.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { scoped, scopedToStreams } from '#adapters/postgres/scoped.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import type { Scope } from '#core/identity.ts';
import type { ListParams, ResourceStore } from '#core/ports/resources.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { refusalOf } from '#test/support/sql-errors.ts';

vi.mock(import('#adapters/postgres/resource-columns.ts'), async (original) => ({
  ...(await original()),
  inTenant: (sql) => sql`true`,
  isKey: (sql, _scope, key) => sql`r.api_group = ${key.group} and r.kind = ${key.kind} and r.name = ${key.name}`,
}));

const WIDGET = { group: 'example.dev', kind: 'Widget' };
const ACME: Scope = { tenants: ['acme'] };
const GLOBEX: Scope = { tenants: ['globex'] };
const STATE = { finalizers: [], labels: '{}', annotations: '{}', ownerReferences: '[]', spec: '{"size": 7}' };
const PAGE: ListParams = { ...WIDGET, labels: [], limit: 50 };
const TABLES = [
  'stream',
  'resource',
  'outbox',
  'event_log',
  'object_event',
  'watch_group',
  'group_member',
  'group_lane',
  'group_dead_letter',
];

let database: PreparedDatabase;
let server: Sql;
let store: ResourceStore;
let streams: { readonly acme: bigint; readonly globex: bigint };

beforeAll(async () => {
  database = await prepareDatabase(['acme', 'globex']);
  server = connect(database.url, {
    applicationName: 'test server',
    role: 'plumbline_server',
    statementTimeoutMs: 5_000,
  });
  store = postgresResources(server);
  await write('acme', 'ours');
  await write('globex', 'theirs');
  await database.sql`insert into plumbline.object_event (stream, tenant, api_group, version, kind, name, uid, controller,
      type, reason, message)
    select s.id, s.tenant, r.api_group, r.version, r.kind, r.name, r.uid, 'test', 'Normal', 'Told', s.tenant
    from plumbline.resource r join plumbline.stream s on s.tenant = r.tenant where r.kind in ('Widget', 'Tenant')`;
  const groups = postgresWatchGroups(database.sql);
  for (const tenant of ['acme', 'globex']) {
    const asked = { audience: 'public', tenants: [tenant], owner: 'ann', name: 'g', selection: '' } as const;
    await groups.join({ ...asked, start: 'earliest', leaseMs: 60_000 });
  }
  await database.sql`insert into plumbline.group_dead_letter (watch_group, stream, lane, seq, position, event, type,
      attempts, reason)
    select distinct on (l.watch_group) l.watch_group, l.stream, l.lane, 1, 1, '{}', 'ADDED', 1, 'test'
    from plumbline.group_lane l`;
  await publishOnce({ outbox: postgresOutbox(database.sql) });
  // What is not published yet stands in outbox.
  await write('acme', 'ours-too');
  await write('globex', 'theirs-too');
  const rows = await database.sql<{ id: bigint; tenant: string }[]>`select id, tenant from plumbline.stream`;
  const idOf = (name: string): bigint => rows.find(({ tenant }) => tenant === name)?.id ?? 0n;
  streams = { acme: idOf('acme'), globex: idOf('globex') };
});

afterAll(async () => {
  await server.end({ timeout: 1 });
  await database.close();
});

describe('without its condition on the tenant', () => {
  const key = { ...WIDGET, tenant: 'globex', name: 'theirs' };

  test('a read finds the object of its own scope, and none of another tenant', async () => {
    expect(await store.get(GLOBEX, key)).toMatchObject({ tenant: 'globex' });
    expect(await store.get(ACME, key)).toBeUndefined();
    expect(await store.getForUpdate(ACME, key)).toBeUndefined();
  });

  describe('a write', () => {
    let before: unknown;
    beforeEach(async () => (before = await allObjects()));

    test.each<[string, () => Promise<unknown>]>([
      ['update', () => store.update(ACME, key, STATE, {})],
      ['status update', () => store.updateStatus(ACME, key, '{"phase": "Mine"}', {})],
      ['deletion', () => store.delete(ACME, key, {})],
      ['forced deletion', () => store.forceDelete(ACME, key, {}, { by: 'ann', reason: 'test' })],
      ['dry run of an update', () => store.dryRun.update(ACME, key, STATE, {})],
      ['dry run of a deletion', () => store.dryRun.delete(ACME, key, {})],
    ])('%s finds no object of another tenant', async (_, deed) => {
      await expect(deed()).rejects.toMatchObject({ reason: 'NotFound' });
      expect(await allObjects()).toEqual(before);
    });
  });

  test.each<[string, ListParams]>([
    ['of a page', PAGE],
    ['of a later page', { ...PAGE, after: { tenant: '', name: '' } }],
    ['by labels', { ...PAGE, labels: [{ key: 'a', operator: 'DoesNotExist', values: [] }] }],
    ['of the other tenant', { ...PAGE, tenant: 'globex' }],
  ])('a list %s has no object of another tenant', async (_, params) => {
    await publishOnce({ outbox: postgresOutbox(database.sql) });
    expect(tenantsOf((await store.list({ tenants: '*' }, params)).rows)).toEqual(['acme', 'globex']);
    expect(tenantsOf((await store.list(ACME, params)).rows)).toEqual(['acme']);
    expect(tenantsOf((await store.list({ tenants: { allBut: ['globex'] } }, params)).rows)).toEqual(['acme']);
  });

  test('a count counts no object of another tenant', async () => {
    expect(await store.countAfter({ tenants: '*' }, PAGE)).toBe(4);
    expect(await store.countAfter(ACME, PAGE)).toBe(2);
  });

  test('a snapshot has no object and no stream of another tenant', async () => {
    const snapshot = await store.snapshot(ACME, [WIDGET]);
    const rows = [];
    for await (const page of snapshot.pages) rows.push(...page);
    await snapshot.close();
    expect(tenantsOf(rows)).toEqual(['acme']);
    expect([...snapshot.streams.keys()]).not.toContain('globex');
  });

  test('the directory of streams has none of another tenant', async () => {
    const directory = postgresStreams(server);
    expect(tenantsOf(await directory.list({ tenants: '*' }))).toContain('globex');
    expect(tenantsOf(await directory.list(ACME, [streams.globex]))).not.toContain('globex');
  });

  test('events of objects are told of no other tenant, nor of its Tenant object', async () => {
    const asked = { conditions: [], limit: 50 };
    const events = postgresObjectEvents(server);
    const told = async (scope: Scope): Promise<readonly string[]> =>
      (await events.list(scope, asked)).events.map(({ kind, name }) => `${kind}/${name}`).toSorted();
    expect(await told({ tenants: '*' })).toContain('Widget/theirs');
    expect(await told(ACME)).toEqual(['Tenant/acme', 'Widget/ours']);
  });

  test('a read of the log has no event of another stream', async () => {
    const rows = await scopedToStreams(server, [streams.acme])`select distinct tenant from plumbline.event_log`;
    expect(rows).toEqual([{ tenant: 'acme' }]);
    const { events } = await postgresEventLog(server).read(
      streams.acme,
      { seq: 0n, position: 0n },
      { maxCount: 10, maxBytes: 1_000_000 },
    );
    expect(new Set(events.map(({ stream }) => stream))).toEqual(new Set([streams.acme]));
  });

  test.each(['watch_group', 'group_member', 'group_lane', 'group_dead_letter'])(
    'a read of %s has nothing of a group over another tenant',
    async (table) => {
      const group = table === 'watch_group' ? 'id' : 'watch_group';
      const seen = async (scope: Scope): Promise<number> =>
        (await scoped(server, scope).unsafe(`select distinct ${group} from plumbline.${table}`)).length;
      expect(await seen({ tenants: '*' })).toBe(2);
      expect(await seen(ACME)).toBe(1);
      expect(await seen({ tenants: [] })).toBe(0);
    },
  );
});

describe('raw statements of the serving role', () => {
  test.each(TABLES)('that name no scope see nothing of %s', async (table) => {
    const rows = await server.unsafe<{ tenant?: string }[]>(`select * from plumbline.${table}`);
    // The stream of the tenant that owns cluster-scoped objects is in every installation.
    expect(rows.filter(({ tenant }) => table !== 'stream' || tenant !== 'system')).toEqual([]);
  });

  test.each(['update plumbline.resource set spec = \'{"size": 9}\'', 'delete from plumbline.resource'])(
    'that name no scope change nothing: %s',
    async (statement) => {
      const before = await allObjects();
      await server.unsafe(statement);
      expect(await allObjects()).toEqual(before);
    },
  );

  test('put nothing into a tenant outside of their scope, nor move anything there', async () => {
    const insert = (sql: Sql): Promise<unknown> => sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values ('globex', 'example.dev', 'Widget', 'intruder')`;
    expect((await refusalOf(insert(scoped(server, ACME)))).code).toBe('42501');
    expect((await refusalOf(insert(server))).code).toBe('42501');
  });

  test('leave no scope behind for the next one on their connection', async () => {
    const one = connect(database.url, { applicationName: 'test', maxConnections: 1, role: 'plumbline_server' });
    const count = (sql: Sql): Promise<readonly { n: number }[]> =>
      sql`select count(*)::int as n from plumbline.resource`;
    expect((await count(scoped(one, ACME)))[0]?.n).toBeGreaterThan(0);
    expect(await count(one)).toEqual([{ n: 0 }]);
    await refusalOf(scoped(one, ACME)`select 1 / 0`);
    expect(await count(one)).toEqual([{ n: 0 }]);
    await one.end({ timeout: 1 });
  });

  test('are told of a commit that was refused', async () => {
    await database.sql`create table public.late (n integer unique deferrable initially deferred)`;
    await database.sql`grant all on public.late to plumbline_server`;
    expect((await refusalOf(scoped(server, ACME)`insert into public.late values (1), (1)`)).code).toBe('23505');
  });

  test('cannot take a scope that a quote in a name would give them', async () => {
    const names = ["x'; set local plumbline.tenants = '*", '"},{"globex', 'a\\', "\\'"];
    expect(await scoped(server, { tenants: names })`select * from plumbline.resource`).toHaveLength(0);
  });
});

test('every table with something of a tenant has a policy for the serving role, or is closed to it', async () => {
  const rows = await database.sql<{ name: string }[]>`
    select c.relname::text as name from pg_class c
    where c.relnamespace = 'plumbline'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and a.attname in ('tenant', 'tenants', 'spec', 'event', 'record', 'watch_group'))
      and not c.relrowsecurity`;
  expect(rows).toEqual([]);
});

test('a partition of the log is no way around its policy', async () => {
  const [partition] = await database.sql<{ name: string }[]>`
    select c.relname::text as name from pg_inherits join pg_class c on c.oid = inhrelid
    where inhparent = 'plumbline.event_log'::regclass limit 1`;
  const refusal = await refusalOf(server.unsafe(`select * from plumbline.${partition?.name}`));
  expect(refusal.code).toBe('42501');
});

async function write(tenant: string, name: string): Promise<void> {
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values (${tenant}, 'example.dev', 'Widget', ${name})`;
}

async function allObjects(): Promise<unknown> {
  return database.sql`select * from plumbline.resource order by uid`;
}

function tenantsOf(rows: readonly { readonly tenant: string }[]): readonly string[] {
  return [...new Set(rows.map(({ tenant }) => tenant))].toSorted();
}
