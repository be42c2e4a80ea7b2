import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const TENANTS = Array.from({ length: 40 }, (_, index) => `tenant-${index}`);
const EACH = 3;

let database: PreparedDatabase;

beforeAll(async () => {
  database = await prepareDatabase(TENANTS);
});

afterAll(() => database.close());

test('tells how many events it published, over streams that were published at the same time', async () => {
  const { sql } = database;
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select tenant, 'example.dev', 'Widget', 'w' || n from unnest(${TENANTS}::text[]) tenant, generate_series(1, ${EACH}::int) n`;
  const [pending] = await sql<{ records: number }[]>`select count(*)::int as records from plumbline.outbox`;
  expect(pending?.records).toBeGreaterThanOrEqual(TENANTS.length * EACH);
  expect(await publishOnce({ outbox: postgresOutbox(sql) })).toBe(pending?.records);
  expect(await publishOnce({ outbox: postgresOutbox(sql) })).toBe(0);
});
