/** How the queue of passes is doing, for metrics. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { WorkState } from '#core/ports/work-queue.ts';

/** Counts with a bound: a scrape must not cost more the worse things are. */
const COUNTED = 10_000;

export async function readWorkState(sql: Sql): Promise<WorkState> {
  const [row] = await sql<WorkState[]>`
    select
      (select count(*)::int4 from (select from plumbline.work_item w join plumbline.controller c on c.name = w.controller
        where w.due_at <= now() and plumbline.is_running(c.last_seen_at) limit ${COUNTED}) d)
        as "dueItems",
      (select count(*)::int4 from (select from plumbline.work_item where failing_since is not null limit ${COUNTED}) f)
        as "failingItems",
      (select count(*)::int4 from (select from plumbline.resource
        where deletion_timestamp < clock_timestamp() - interval '5 minutes' limit ${COUNTED}) s) as "stuckDeletions",
      (select count(*)::int4 from (select from plumbline.orphan limit ${COUNTED}) o) as orphans`;
  if (!row) throw new Error('the state of the work queue gave no row');
  return row;
}
