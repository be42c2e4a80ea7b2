/** Retention, brought about: a stream's first events get old, and are removed as an instance removes them. */

import { expect } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';

const DAY_MS = 86_400_000;

/** As if the tenant's events up to this seq had been published four days ago, and are kept for one. */
export async function expireEvents(sql: Sql, tenant: string, lastSeq: number): Promise<void> {
  await untilPublished(sql, tenant, lastSeq);
  const [day, next] = [4, 3].map((days) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10));
  await sql.unsafe(`create table plumbline.event_log_${day?.replaceAll('-', '')} partition of plumbline.event_log
    for values from ('${day} 00:00:00+00') to ('${next} 00:00:00+00')`);
  await sql`update plumbline.event_log e set published_at = ${`${day} 12:00:00+00`}::timestamptz
    from plumbline.stream s where e.stream = s.id and s.tenant = ${tenant} and e.seq <= ${lastSeq}`;
  const [row] = await sql<{ dropped: number }[]>`
    select plumbline.expire_event_log(clock_timestamp() - interval '1 day') as dropped`;
  if (row?.dropped !== 1) throw new Error(`retention dropped ${row?.dropped} partitions`);
}

/** Resolves when the tenant's events up to this seq are in the log, and in its index. */
export async function untilPublished(sql: Sql, tenant: string, lastSeq: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const [row] = await sql<{ last: bigint }[]>`
          select f.last_seq as last from plumbline.frontier f join plumbline.stream s on s.id = f.stream
          where s.tenant = ${tenant} and s.closed_at is null`;
        return Number(row?.last);
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThanOrEqual(lastSeq);
}
