/**
 * The whole state at the logs' heads, streamed: one REPEATABLE READ transaction with a cursor, so that every page shows
 * the same moment and memory is one page. It takes a session of its own: a client that reads its state slowly must not
 * hold a connection that others need.
 */

import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { columnsBefore, columnsNow, inTenant, shownColumns } from '#adapters/postgres/resource-columns.ts';
import { beginScoped } from '#adapters/postgres/scoped.ts';
import type { Session, Sessions } from '#adapters/postgres/session.ts';
import { NoTurn } from '#adapters/postgres/turns.ts';
import type { Scope } from '#core/identity.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** A page holds about as much as `PAGE_CHARACTERS`: its rows are counted by the size of those before. */
const FIRST_PAGE_ROWS = 4;
/** Few enough when small objects are followed by the largest; 100,000 small ones cost 0.5 s more so. */
const MAX_PAGE_ROWS = 64;
const PAGE_CHARACTERS = 512 * 1024;

/** See the port. */
export async function snapshotAtHead(
  sessions: Sessions,
  scope: Scope,
  kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
): Promise<Snapshot> {
  let session: Session | undefined;
  try {
    session = await sessions.open(JSON.stringify(scope.tenants));
    const { sql } = session;
    // A reader that stalls must not hold its snapshot, and vacuum, for ever.
    await sql.unsafe(
      `${beginScoped(scope, 'isolation level repeatable read read only')};
        set local idle_in_transaction_session_timeout = '60s'`,
    );
    const rows = await readStreams(sql, scope);
    await declareState(
      sql,
      scope,
      rows.map(({ stream }) => stream),
      kinds,
    );
    return {
      streams: new Map(rows.map(({ tenant, stream }) => [tenant, stream])),
      head: new Map(rows.map(({ stream, seq, position }) => [stream, { seq, position }])),
      pages: pages(session),
      close: () => closeQuietly(session),
    };
  } catch (error) {
    await closeQuietly(session);
    if (error instanceof NoTurn) throw tooManyReaders(error);
    throw toCallerError(error, 'snapshot');
  }
}

/** Each holds a connection for as long as its client takes. */
function tooManyReaders(cause: NoTurn): StatusError {
  const message = 'the initial state of these tenants is being read by as many as may at once; try again';
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 2 }, cause });
}

interface StreamRow {
  readonly stream: bigint;
  readonly tenant: string;
  readonly seq: bigint;
  readonly position: bigint;
}

async function readStreams(sql: Sql, scope: Scope): Promise<readonly StreamRow[]> {
  return sql<StreamRow[]>`
    select s.id as stream, s.tenant, f.last_seq as seq, f.last_position as position
    from plumbline.stream s join plumbline.frontier f on f.stream = s.id
    where s.closed_at is null and ${inTenant(sql, scope, undefined, sql`s.tenant`)} order by s.id`;
}

/** Its connection may be gone already. */
async function closeQuietly(session: Session | undefined): Promise<void> {
  await session?.close().catch(() => undefined);
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
      select ${columnsBefore(sql)} from pending o where o.old_resource_version is not null
    )
    select ${shownColumns(sql)} from state r
    join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
    where ${isWanted} and ${inTenant(sql, scope, undefined, sql`r.tenant`)}`;
}

async function* pages({ sql }: Session): AsyncGenerator<readonly ResourceRow[], void> {
  let count = FIRST_PAGE_ROWS;
  try {
    for (;;) {
      const rows = await sql<ResourceRow[]>`fetch ${sql.unsafe(String(count))} from state`;
      if (rows.length > 0) yield rows;
      if (rows.length < count) return;
      count = nextCount(rows);
    }
  } catch (error) {
    throw toCallerError(error, 'snapshot');
  }
}

function nextCount(rows: readonly ResourceRow[]): number {
  const characters = rows.reduce((sum, { spec, status }) => sum + spec.length + status.length, 1);
  const fitting = Math.floor((PAGE_CHARACTERS * rows.length) / characters);
  return Math.max(1, Math.min(fitting, 2 * rows.length, MAX_PAGE_ROWS));
}
