import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { tenants } from '#functions/reconcile/kinds/tenant.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { prepareReconciling, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
let sql: Sql;

beforeAll(async () => {
  const database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'test tenants', maxConnections: 2 });
  const kind = tenants({ streams: postgresTenantStreams(sql, undefined), graceMs: 60_000 });
  world = await prepareReconciling([kind], ['acme'], database);
});
afterAll(async () => {
  await sql?.end();
  await world?.close();
});

async function isOpen(): Promise<boolean> {
  const [row] = await sql<{ open: boolean }[]>`
    select closed_at is null as open from plumbline.stream where tenant = 'moment'`;
  return row?.open ?? false;
}

test('the stream of a tenant that lives for a moment is open until whoever looks for new ones has seen it', async () => {
  const driver = world.driver();
  await world.create('Tenant', 'moment');
  await driver.run();
  await world.delete('Tenant', 'moment');
  // However slow this machine is, it is young.
  await sql`update plumbline.stream set created_at = clock_timestamp() + interval '1 hour' where tenant = 'moment'`;
  await sql`update plumbline.work_item set due_at = clock_timestamp()`;
  await driver.run();
  expect(await isOpen()).toBe(true);
  expect((await world.conditions('Tenant', 'moment'))['DeletionBlocked']).toBe('True WatchersFind');

  await sql`update plumbline.stream set created_at = clock_timestamp() - interval '1 hour' where tenant = 'moment'`;
  await sql`update plumbline.work_item set due_at = clock_timestamp()`;
  await driver.run();
  expect(await isOpen()).toBe(false);
});
