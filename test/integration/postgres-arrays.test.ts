import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'array test' });
});

afterAll(async () => {
  await sql.end();
  await database.drop();
});

/** All that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
const text = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.stringMatching(/^["\\{},\s'NULnul]*$/),
    fc.constantFrom('', 'null', 'NULL', '{}', '"', '\\', ' ', '\n'),
  )
  .map((value) => value.replaceAll('\0', '').toWellFormed());

test('arrays of texts go there and back as they are, whatever they hold', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 5 }), async (values) => {
      const [row] = await sql`select ${values}::text[] as array, array_length(${values}::text[], 1) as length`;
      expect(row).toEqual({ array: values, length: values.length === 0 ? null : values.length });
    }),
    { numRuns: 300 },
  );
});

test('arrays of bigints are given as decimals and come as bigints', async () => {
  const values = [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)];
  const [row] = await sql`select ${values.map(String)}::bigint[] as array, ${[]}::bigint[] as none`;
  expect(row).toEqual({ array: values, none: [] });
});
