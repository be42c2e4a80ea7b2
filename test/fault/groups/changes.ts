/** Changes by raw SQL at a steady rate, so many in all. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { Random } from '#test/support/random.ts';

export interface ChangesOptions {
  readonly sql: Sql;
  readonly tenants: readonly string[];
  readonly events: number;
  readonly eventsPerSecond: number;
  readonly random: Random;
}

/** Of each tenant; all are changed at once. */
const OBJECTS = 40;
const REPLACED_SHARE = 0.1;

/** Resolves when as many events as asked for, or a few more, are committed. */
export async function makeChanges({ sql, tenants, events, eventsPerSecond, random }: ChangesOptions): Promise<void> {
  const startMs = performance.now();
  let made = 0;
  for (const tenant of tenants) {
    const { count } = await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
      select ${tenant}, 'example.dev', 'Widget', 'w' || n, '{"size": 0}' from generate_series(1, ${OBJECTS}) n`;
    made += count;
  }
  for (let round = 1; made < events; round += 1) {
    const tenant = random.pick(tenants);
    const replaced = random.chance(REPLACED_SHARE) ? random.int(1, OBJECTS) : 0;
    if (replaced > 0) {
      const name = `w${replaced}`;
      await sql`delete from plumbline.resource where tenant = ${tenant} and kind = 'Widget' and name = ${name}`;
      await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
        values (${tenant}, 'example.dev', 'Widget', ${name}, '{"size": 0}')`;
      made += 2;
    }
    const { count } = await sql`update plumbline.resource set spec = jsonb_build_object('size', ${round % 1_000}::int)
      where tenant = ${tenant} and kind = 'Widget'`;
    made += count;
    const dueMs = startMs + (made / eventsPerSecond) * 1_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
  }
}
