/**
 * What counting objects for quotas costs: creations by SQL with the triggers that count and without, in turns; in one
 * tenant, where they wait for each other's commit, and each client in a tenant of its own.
 */

import postgres from 'postgres';
import type { Instance } from '#test/bench/instance.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';

const CLIENTS = 8;
const PER_CLIENT = 300;
const ROUNDS = 5;
const TENANTS = Array.from({ length: CLIENTS }, (_, n) => `count${n}`);

export async function benchObjectCount({ sql, databaseUrl }: Instance): Promise<readonly Finding[]> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'system', 'plumbline.dev', 'Tenant', name from unnest(${TENANTS}::text[]) name`;
  const clients = TENANTS.map(() => postgres(databaseUrl, { max: 1, onnotice: () => undefined }));
  let made = 0;
  const findings: Finding[] = [];
  for (const { what, count, tenantOf } of [
    { what: 'one client', count: 1, tenantOf: () => 'count0' },
    { what: `${CLIENTS} clients in one tenant`, count: CLIENTS, tenantOf: () => 'count0' },
    { what: `${CLIENTS} clients, each in its own tenant`, count: CLIENTS, tenantOf: (n: number) => TENANTS[n] ?? '' },
  ]) {
    const rates = { on: [] as number[], off: [] as number[] };
    for (let round = 0; round < ROUNDS; round += 1) {
      rates.on.push(await creationsPerSecond(clients.slice(0, count), tenantOf));
      await counting('disable');
      rates.off.push(await creationsPerSecond(clients.slice(0, count), tenantOf));
      await counting('enable');
    }
    const ratio = median(rates.on) / median(rates.off);
    findings.push({
      what: `creations by SQL, counted for quotas: ${what}`,
      figure: `${rate(median(rates.on))} (not counted ${rate(median(rates.off))})`,
      ratio: `${ratio.toFixed(2)}×`,
      goal: '',
      met: undefined,
    });
  }
  await Promise.all(clients.map((client) => client.end()));
  return findings;

  async function counting(how: 'enable' | 'disable'): Promise<void> {
    await sql.unsafe(`alter table plumbline.resource ${how} trigger zzz_count_insert`);
  }

  async function creationsPerSecond(
    writers: readonly postgres.Sql[],
    tenantOf: (n: number) => string,
  ): Promise<number> {
    const startMs = performance.now();
    await Promise.all(
      writers.map(async (writer, n) => {
        for (let each = 0; each < PER_CLIENT; each += 1) {
          made += 1;
          await writer`insert into plumbline.resource (tenant, api_group, kind, name, spec)
            values (${tenantOf(n)}, 'example.dev', 'Widget', ${`c${made}`}, '{"size": 1}')`;
        }
      }),
    );
    return (writers.length * PER_CLIENT * 1000) / (performance.now() - startMs);
  }
}
