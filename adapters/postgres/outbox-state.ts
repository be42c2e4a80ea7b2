/** How the outbox and the capture are doing, for metrics and readiness. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { OutboxState } from '#core/ports/outbox.ts';

/** Counts at most this many; more is "a lot" and would only cost. */
const COUNTED_RECORDS = 100_000;

export async function readOutboxState(sql: Sql): Promise<OutboxState> {
  const [row] = await sql<OutboxState[]>`
    select (select count(*) from (select from plumbline.outbox limit ${COUNTED_RECORDS}) r)::float8 as records,
      greatest(0, extract(epoch from clock_timestamp() - coalesce((
        select min(o.occurred_at) from plumbline.stream s cross join lateral (
          select occurred_at from plumbline.outbox where stream = s.id order by id limit 1) o), clock_timestamp())))::float8
        as "oldestSeconds",
      (select count(*) from plumbline.quarantine)::float8 as "quarantinedStreams",
      (select count(*) from plumbline.frontier f join plumbline.topic t on t.name = f.topic
        where t.removed_at is null and (t.ready_at is null or t.missing_since is not null))::float8 as "unreadyTopics"`;
  if (!row) throw new Error('the outbox state has no row');
  return row;
}

/** Captured tables whose triggers are missing or off, as sentences. Empty in a healthy database. */
export async function captureProblems(sql: Sql): Promise<readonly string[]> {
  const rows = await sql<{ tableName: string; trigger: string }[]>`
    select table_name as "tableName", missing_trigger as trigger from plumbline.uncaptured_tables()`;
  return rows.map(
    ({ tableName, trigger }) => `${tableName} has no enabled trigger ${trigger}: changes are lost, or break its rules`,
  );
}
