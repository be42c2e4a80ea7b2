/** How watch groups are doing, for metrics. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { WatchGroupTotals } from '#core/ports/watch-group-admin.ts';

/** Counts with a bound: a scrape must not cost more the worse things are. */
const COUNTED = 10_000;

export async function readGroupTotals(sql: Sql): Promise<WatchGroupTotals> {
  const [row] = await sql<WatchGroupTotals[]>`
    select
      (select count(*)::int4 from plumbline.watch_group where ended_at = 'infinity') as groups,
      (select count(*)::int4 from plumbline.group_member where expires_at > clock_timestamp()) as members,
      (select coalesce(max(f.last_seq - least(f.last_seq, greatest(l.confirmed_seq, f.first_seq - 1))), 0)::float8
        from (select stream, min(coalesce(confirmed_seq, 0)) as confirmed_seq from plumbline.group_lane group by stream) l
        join plumbline.frontier f on f.stream = l.stream) as "streamLag",
      (select coalesce(extract(epoch from clock_timestamp() - min(unacked_since)), 0)::float8 from plumbline.group_lane)
        as "oldestUnackedSeconds",
      (select count(*)::int4 from (select from plumbline.group_dead_letter limit ${COUNTED}) d) as "deadLetters"`;
  if (!row) throw new Error('the state of watch groups gave no row');
  return row;
}
