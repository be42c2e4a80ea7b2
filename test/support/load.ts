/** Single writes by raw SQL at a steady rate: what a busy control plane looks like from outside. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { Random } from '#test/support/random.ts';

export interface LoadOptions {
  readonly sql: Sql;
  readonly tenants: readonly string[];
  /** Objects per tenant that are made, changed and deleted over and over. */
  readonly objects: number;
  readonly writesPerSecond: number;
  readonly random: Random;
}

/** Writes until the signal aborts; resolves, with the number of writes, when the last is committed. */
export async function writeSteadily(options: LoadOptions, signal: AbortSignal): Promise<number> {
  const { sql, tenants, objects, random } = options;
  const startMs = performance.now();
  let writes = 0;
  while (!signal.aborted) {
    const due = Math.floor(((performance.now() - startMs) / 1000) * options.writesPerSecond);
    // Several at once when it is behind: the rate is what counts.
    await Promise.all(Array.from({ length: Math.min(8, due - writes) }, writeOne));
    if (writes >= due) await new Promise((resolve) => setTimeout(resolve, 1000 / options.writesPerSecond));
  }
  return writes;

  async function writeOne(): Promise<void> {
    writes += 1;
    const tenant = random.pick(tenants);
    const name = `object-${random.int(0, objects - 1)}`;
    const share = random.next();
    if (share < 0.1) {
      await sql`delete from plumbline.resource where tenant = ${tenant} and kind = 'Widget' and name = ${name}`;
    } else if (share < 0.3) {
      await sql`update plumbline.resource set labels = jsonb_build_object('colour', ${random.pick(['red', 'blue'])}::text)
        where tenant = ${tenant} and kind = 'Widget' and name = ${name}`;
    } else {
      await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
        values (${tenant}, 'example.dev', 'Widget', ${name}, jsonb_build_object('size', ${random.int(0, 1000)}::int))
        on conflict (api_group, kind, tenant, name) do update set spec = excluded.spec`;
    }
  }
}
