/**
 * What the second wall costs: statements of the store bare, and each as a transaction that names its scope, in turns over
 * the same pool; with one caller at a time for the latency, and with many for the rate.
 */

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { prepareDatabase } from '#test/support/prepared-database.ts';

const ROUNDS = 6;
const CALLS = 3_000;
const CALLERS = 8;

/** Prints a line for each kind of statement. */
export async function benchScoped(): Promise<void> {
  const database = await prepareDatabase(['acme']);
  // Passes every policy, so that both do the same work.
  const pool = connect(database.url, { applicationName: 'bench', maxConnections: CALLERS, role: 'plumbline_worker' });
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'acme', 'example.dev', 'Widget', 'w' || n from generate_series(1, 10000) n`;
  const read = (sql: Sql): Promise<unknown> => sql`select spec::text from plumbline.resource
    where api_group = 'example.dev' and kind = 'Widget' and tenant = 'acme' and name = ${'w77'}`;
  const page = (sql: Sql): Promise<unknown> => sql`select uid, name, spec::text from plumbline.resource
    where api_group = 'example.dev' and kind = 'Widget' and tenant = 'acme' and name > ${'w5'} order by name limit 500`;
  const write = (sql: Sql): Promise<unknown> => sql`update plumbline.resource
    set spec = jsonb_build_object('n', ${Math.random()}::float8)
    where api_group = 'example.dev' and kind = 'Widget' and tenant = 'acme' and name = ${`w${1 + Math.floor(Math.random() * 9_999)}`}`;
  for (const [name, run, calls] of [
    ['a read of one object', read, CALLS],
    ['a page of 500', page, CALLS / 10],
    ['a write', write, CALLS / 2],
  ] as const) {
    for (const callers of [1, CALLERS]) {
      const bare: number[] = [];
      const walled: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        bare.push(await microseconds(() => run(pool), calls, callers));
        walled.push(await microseconds(() => run(scoped(pool, { tenants: ['acme'] })), calls, callers));
      }
      const [one, other] = [median(bare), median(walled)];
      console.log(
        `${name}, ${callers} at once: ${one.toFixed(0)} µs bare, ${other.toFixed(0)} µs scoped, ${(other / one).toFixed(2)} ×`,
      );
    }
  }
  await pool.end();
  await database.close();
}

/** For each call, on average. */
async function microseconds(call: () => Promise<unknown>, calls: number, callers: number): Promise<number> {
  const start = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let n = 0; n < calls / callers; n += 1) await call();
    }),
  );
  return ((performance.now() - start) * 1_000) / calls;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
