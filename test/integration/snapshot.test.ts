import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import type { ResourceStore, Snapshot } from '#core/ports/resources.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { createTenants, type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const WIDGETS = [{ group: 'example.dev', kind: 'Widget' }];
/** More than may be open at once. */
const MANY = 20;

let database: PreparedDatabase;
let sql: PreparedDatabase['sql'];
let store: ResourceStore;

beforeAll(async () => {
  database = await prepareDatabase(['blue', 'red']);
  ({ sql } = database);
  store = postgresResources(sql);
  for (const tenant of ['blue', 'red']) await write(tenant, 'one');
  await publishOnce({ outbox: postgresOutbox(sql) });
});

afterAll(() => database.close());

test('a snapshot that is closed gives its connection back: unread, half read, read, and closed twice', async () => {
  for (let count = 0; count < MANY; count += 1) {
    const snapshot = await store.snapshot({ tenants: '*' }, WIDGETS);
    if (count % 3 > 0) await namesOf(snapshot, count % 3 === 1 ? 1 : undefined);
    await snapshot.close();
    await snapshot.close();
  }
  const last = await store.snapshot({ tenants: '*' }, WIDGETS);
  expect(await namesOf(last)).toEqual(['blue/one', 'red/one']);
  await last.close();
});

test('it names the open streams of its scope, and shows theirs alone at one moment, whatever happens to their tenants', async () => {
  await createTenants(sql, ['green']);
  await write('green', 'old');
  await publishOnce({ outbox: postgresOutbox(sql) });
  const before = await store.snapshot({ tenants: ['green', 'red', 'none'] }, WIDGETS);
  await sql`delete from plumbline.resource where tenant = 'green'`;
  await sql`delete from plumbline.resource where kind = 'Tenant' and name = 'green'`;
  await createTenants(sql, ['green']);
  await write('green', 'new');
  await publishOnce({ outbox: postgresOutbox(sql) });
  const behind = await store.snapshot({ tenants: ['green', 'red', 'none'] }, WIDGETS);

  expect(await namesOf(before)).toEqual(['green/old', 'red/one']);
  expect(await namesOf(behind)).toEqual(['green/new', 'red/one']);
  for (const { streams, head } of [before, behind]) {
    expect([...streams.keys()].toSorted()).toEqual(['green', 'red']);
    expect([...head.keys()]).toEqual([...streams.values()].toSorted((one, other) => Number(one - other)));
  }
  expect(behind.streams.get('green')).not.toBe(before.streams.get('green'));
  expect(behind.head.get(behind.streams.get('green') ?? 0n)?.seq).toBe(1n);
  await Promise.all([before.close(), behind.close()]);
});

async function write(tenant: string, name: string): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values (${tenant}, 'example.dev', 'Widget', ${name})`;
}

async function namesOf({ pages }: Snapshot, maxPages: number = Infinity): Promise<readonly string[]> {
  const names: string[] = [];
  let count = 0;
  for await (const page of pages) {
    names.push(...page.map(({ tenant, name }) => `${tenant}/${name}`));
    count += 1;
    if (count === maxPages) break;
  }
  return names.toSorted();
}
