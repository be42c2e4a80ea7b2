/**
 * What the second wall costs: statements bare, and each as a transaction that names its scope, in turns over one pool; by
 * one caller for the latency, and by several for the rate.
 */

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import { createWidgets, type Instance, TENANT } from '#test/bench/instance.ts';
import { type Finding, median } from '#test/bench/report.ts';

const OBJECTS = 10_000;
const ROUNDS = 7;
const CALLERS = 8;

export async function benchScoped({ sql, databaseUrl }: Instance): Promise<readonly Finding[]> {
  await createWidgets(sql, OBJECTS);
  await sql`vacuum analyze plumbline.resource`;
  // A role that passes every policy, so that bare statements do the same work.
  const pool = connect(databaseUrl, { applicationName: 'bench', maxConnections: CALLERS, role: 'plumbline_worker' });
  const findings: Finding[] = [];
  for (const { what, run, calls } of [
    { what: 'read of one object', run: read, calls: 2_400 },
    { what: 'page of 500', run: page, calls: 240 },
    { what: 'write', run: write, calls: 800 },
  ]) {
    for (const callers of [1, CALLERS]) {
      const bare: number[] = [];
      const walled: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        bare.push(await microseconds(() => run(pool), calls, callers));
        walled.push(await microseconds(() => run(scoped(pool, { tenants: [TENANT] })), calls, callers));
      }
      findings.push({
        what: `${what} by SQL behind row-level security, ${callers} at once`,
        figure: `${median(walled).toFixed(0)} µs (bare ${median(bare).toFixed(0)} µs)`,
        ratio: `${(median(walled) / median(bare)).toFixed(2)}×`,
        goal: '',
        met: undefined,
      });
    }
  }
  await pool.end();
  return findings;
}

async function read(sql: Sql): Promise<unknown> {
  return sql`select spec::text from plumbline.resource
    where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name = ${anyName()}`;
}

async function page(sql: Sql): Promise<unknown> {
  return sql`select uid, name, spec::text from plumbline.resource
    where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name > 'w5' order by name limit 500`;
}

async function write(sql: Sql): Promise<unknown> {
  return sql`update plumbline.resource set spec = jsonb_build_object('size', ${Math.random()}::float8)
    where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name = ${anyName()}`;
}

function anyName(): string {
  return `w${1 + Math.floor(Math.random() * OBJECTS)}`;
}

/** For each call, on average. */
async function microseconds(call: () => Promise<unknown>, calls: number, callers: number): Promise<number> {
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let n = 0; n < calls / callers; n += 1) await call();
    }),
  );
  return ((performance.now() - startMs) * 1_000) / calls;
}
