/**
 * The whole state at the logs' heads, streamed: one REPEATABLE READ transaction with a cursor, so that every page shows
 * the same moment and memory is one page. It takes a session of its own: a client that reads its state slowly must not
 * hold a connection that others need.
 */

import { type Fragment, type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { columnsBefore, columnsNow, shownColumns } from '#adapters/postgres/resource-columns.ts';
import type { Session, Sessions } from '#adapters/postgres/session.ts';
import type { Scope } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

const PAGE_ROWS = 250;

/** See the port. The session is kept until the pages are read or given up. */
export async function snapshotAtHead(
  sessions: Sessions,
  scope: Scope,
  streams: readonly bigint[],
  kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
): Promise<Snapshot> {
  let session: Session | undefined;
  try {
    session = await sessions.open();
    const { sql } = session;
    // A reader that stalls must not hold its snapshot, and vacuum, for ever.
    await sql.unsafe(
      "begin isolation level repeatable read read only; set local idle_in_transaction_session_timeout = '60s'",
    );
    const head = await readHead(sql, streams);
    await declareState(sql, scope, streams, kinds);
    return { head, pages: pages(session) };
  } catch (error) {
    await session?.close();
    throw toCallerError(error, 'snapshot');
  }
}

async function readHead(sql: Sql, streams: readonly bigint[]): Promise<ReadonlyMap<bigint, LogPoint>> {
  const rows = await sql<{ stream: bigint; seq: bigint; position: bigint }[]>`
    select stream, last_seq as seq, last_position as position from plumbline.frontier
    where stream = any (${streams.map(String)}::bigint[])`;
  return new Map(rows.map(({ stream, seq, position }) => [stream, { seq, position }]));
}

/** A cursor of the server's. The driver's own writes to its connection whenever the reader comes back, dead or alive. */
async function declareState(
  sql: Sql,
  scope: Scope,
  streams: readonly bigint[],
  kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
): Promise<void> {
  const isWanted =
    kinds === undefined
      ? sql`true`
      : sql`(r.api_group, r.kind) in (
    select * from unnest(${kinds.map(({ group }) => group)}::text[], ${kinds.map(({ kind }) => kind)}::text[]))`;
  const isVisible: Fragment = scope.tenants === '*' ? sql`true` : sql`r.tenant = any (${[...scope.tenants]}::text[])`;
  await sql`
    declare state no scroll cursor for
    with pending as materialized (
      select distinct on (o.uid) o.* from plumbline.outbox o
      where o.stream = any (${streams.map(String)}::bigint[]) order by o.uid, o.id
    ),
    state as (
      select ${columnsNow(sql)} from plumbline.resource r
      where r.tenant in (select tenant from plumbline.stream where id = any (${streams.map(String)}::bigint[]))
        and r.uid not in (select uid from pending)
      union all
      select ${columnsBefore(sql)} from pending o where o.type <> 'ADDED'
    )
    select ${shownColumns(sql)} from state r
    join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
    where ${isWanted} and ${isVisible}`;
}

async function* pages(session: Session): AsyncGenerator<readonly ResourceRow[], void> {
  const { sql } = session;
  try {
    for (;;) {
      const rows = await sql<ResourceRow[]>`fetch ${sql.unsafe(String(PAGE_ROWS))} from state`;
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE_ROWS) return;
    }
  } catch (error) {
    throw toCallerError(error, 'snapshot');
  } finally {
    await session.close();
  }
}
