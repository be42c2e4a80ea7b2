/**
 * The whole state at the logs' heads, streamed: one REPEATABLE READ transaction with a cursor, so that every page shows
 * the same moment and memory is one page.
 */

import { type Connection, type Fragment, type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { columnsBefore, columnsNow, shownColumns } from '#adapters/postgres/resource-columns.ts';
import type { Scope } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

const PAGE_ROWS = 250;

/** See the port. The connection is held until the pages are read or given up. */
export async function snapshotAtHead(
  sql: Sql,
  scope: Scope,
  streams: readonly bigint[],
  kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
): Promise<Snapshot> {
  try {
    const connection = await sql.reserve();
    try {
      // A reader that stalls must not hold its snapshot, and vacuum, for ever.
      await connection.unsafe(
        "begin isolation level repeatable read read only; set local idle_in_transaction_session_timeout = '60s'",
      );
      const head = await readHead(connection, streams);
      return { head, pages: pages(connection, scope, streams, kinds) };
    } catch (error) {
      connection.release();
      throw error;
    }
  } catch (error) {
    throw toCallerError(error, 'snapshot');
  }
}

async function readHead(connection: Connection, streams: readonly bigint[]): Promise<ReadonlyMap<bigint, LogPoint>> {
  const rows = await connection<{ stream: bigint; seq: bigint; position: bigint }[]>`
    select stream, last_seq as seq, last_position as position from plumbline.frontier
    where stream = any (${streams.map(String)}::bigint[])`;
  return new Map(rows.map(({ stream, seq, position }) => [stream, { seq, position }]));
}

async function* pages(
  connection: Connection,
  scope: Scope,
  streams: readonly bigint[],
  kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
): AsyncGenerator<readonly ResourceRow[], void> {
  const isWanted =
    kinds === undefined
      ? connection`true`
      : connection`(r.api_group, r.kind) in (
    select * from unnest(${kinds.map(({ group }) => group)}::text[], ${kinds.map(({ kind }) => kind)}::text[]))`;
  const isVisible: Fragment =
    scope.tenants === '*' ? connection`true` : connection`r.tenant = any (${[...scope.tenants]}::text[])`;
  try {
    const query = connection<ResourceRow[]>`
      with pending as materialized (
        select distinct on (o.uid) o.* from plumbline.outbox o
        where o.stream = any (${streams.map(String)}::bigint[]) order by o.uid, o.id
      ),
      state as (
        select ${columnsNow(connection)} from plumbline.resource r
        where r.tenant in (select tenant from plumbline.stream where id = any (${streams.map(String)}::bigint[]))
          and r.uid not in (select uid from pending)
        union all
        select ${columnsBefore(connection)} from pending o where o.type <> 'ADDED'
      )
      select ${shownColumns(connection)} from state r
      join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
      where ${isWanted} and ${isVisible}`;
    for await (const rows of query.cursor(PAGE_ROWS)) yield rows;
  } catch (error) {
    throw toCallerError(error, 'snapshot');
  } finally {
    // On a dead connection there is nothing to roll back.
    await connection`rollback`.catch(() => undefined);
    connection.release();
  }
}
