/**
 * Lists at the log's head: exactly the state that results from the events published so far. One snapshot reads the
 * frontier, the rows, and for each object with unpublished records the state before the first of them in place of its
 * row. So a watch from the frontier goes on without a gap and without a step back, whatever is unpublished.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import {
  columnsBefore,
  columnsNow,
  inTenant,
  selectorCondition,
  shownColumns,
} from '#adapters/postgres/resource-columns.ts';
import type { Scope } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { ListPage, ListParams } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

const PUBLISH_WAIT_MS = 1_000;
const FIRST_POLL_MS = 1;
const LONGEST_POLL_MS = 20;

/** One record that was unpublished when the list began: when it is published, so are all that were visible with it. */
interface PendingRecord {
  readonly stream: bigint;
  readonly id: bigint;
  /** A quarantined record holds the stream: it will not be published soon. */
  readonly held: boolean;
}

interface HeadPage extends ListPage {
  readonly pending: readonly PendingRecord[];
}

/**
 * See the port: waits for the caller's own writes, then shows the log's head; current rows without a head if it stays
 * behind. One held tenant takes the head from lists of that tenant, and from no others: those show it as its log does.
 */
export async function listAtHead(sql: Sql, scope: Scope, params: ListParams): Promise<ListPage> {
  // A later page goes with the first one's cursor: what changed since comes from the watch.
  if (params.after) return currentPage(sql, scope, params);
  const first = await headPage(sql, scope, params);
  const awaited = first.pending.filter((record) => !record.held);
  if (awaited.length < first.pending.length && params.tenant !== undefined) return currentPage(sql, scope, params);
  if (awaited.length === 0) return first;
  if (await waitUntilPublished(sql, awaited)) return headPage(sql, scope, params);
  return currentPage(sql, scope, params);
}

async function waitUntilPublished(sql: Sql, records: readonly PendingRecord[]): Promise<boolean> {
  const deadline = performance.now() + PUBLISH_WAIT_MS;
  const streams = records.map((record) => String(record.stream));
  const ids = records.map((record) => String(record.id));
  for (let pollMs = FIRST_POLL_MS; performance.now() < deadline; pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS)) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    const [row] = await sql<{ pending: boolean }[]>`
      select exists (
        select from unnest(${streams}::bigint[], ${ids}::bigint[]) w (stream, id)
        join plumbline.outbox o on o.stream = w.stream and o.id = w.id
      ) as pending`;
    if (!row?.pending) return true;
  }
  return false;
}

async function headPage(sql: Sql, scope: Scope, params: ListParams): Promise<HeadPage> {
  // NOT IN is hashed, however few records the planner expected.
  const page = sql`
    select ${columnsNow(sql)} from plumbline.resource r
    where ${inScope(sql, scope, params)} ${selectorCondition(sql, params.labels)}
      and r.uid not in (select uid from pending)
    order by r.tenant, r.name limit ${params.limit + 1}`;
  // "r" again, so that the same conditions apply to the state before as to the rows.
  const rewound = sql`
    select ${columnsNow(sql)} from (select ${columnsBefore(sql)} from pending o where o.old_resource_version is not null) r
    where ${inScope(sql, scope, params)} ${selectorCondition(sql, params.labels)}
    order by r.tenant, r.name limit ${params.limit + 1}`;
  const rows = await sql<(ResourceRow & { head: HeadJson; uid: string | null })[]>`
    with streams as materialized (
      select s.id, f.last_seq, f.last_position
      from plumbline.stream s join plumbline.frontier f on f.stream = s.id
      where s.closed_at is null and ${inTenant(sql, scope, params.tenant, sql`s.tenant`)}
    ),
    unpublished as materialized (
      select o.* from streams s join plumbline.outbox o on o.stream = s.id
      where o.api_group = ${params.group} and o.kind = ${params.kind}
    ),
    pending as materialized (
      select distinct on (o.uid) o.* from unpublished o order by o.uid, o.id
    ),
    page as (
      select * from (select * from (${page}) a union all select * from (${rewound}) b) r
      order by r.tenant, r.name limit ${params.limit + 1}
    )
    -- The head rides on the first row only.
    select case when r.place = 1 or r.place is null then h.head end as head, r.*
    from (select jsonb_build_object(
        'streams', (select jsonb_agg(array[id::text, last_seq::text, last_position::text]) from streams),
        'pending', (
          select jsonb_agg(array[u.stream::text, u.id::text, case when q.stream is null then '' else 'held' end])
          from (select stream, max(id) as id from unpublished group by stream) u
          left join plumbline.quarantine q on q.stream = u.stream)) as head) h
    left join (
      select row_number() over (order by r.tenant, r.name) as place, ${shownColumns(sql)} from page r join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
    ) r on true
    order by r.place`;
  return toHeadPage(rows, params.limit);
}

interface HeadJson {
  readonly streams: readonly (readonly [string, string, string])[] | null;
  readonly pending: readonly (readonly [string, string, string])[] | null;
}

function toHeadPage(rows: readonly (ResourceRow & { head: HeadJson; uid: string | null })[], limit: number): HeadPage {
  const headJson = rows[0]?.head;
  const found: readonly ResourceRow[] = rows[0]?.uid === null ? [] : rows;
  return {
    rows: found.slice(0, limit),
    more: found.length > limit,
    head: new Map<bigint, LogPoint>(
      (headJson?.streams ?? []).map(([id, seq, position]) => [
        BigInt(id),
        { seq: BigInt(seq), position: BigInt(position) },
      ]),
    ),
    pending: (headJson?.pending ?? []).map(([stream, id, held]) => ({
      stream: BigInt(stream),
      id: BigInt(id),
      held: held !== '',
    })),
  };
}

async function currentPage(sql: Sql, scope: Scope, params: ListParams): Promise<ListPage> {
  const rows = await sql<ResourceRow[]>`
    select ${shownColumns(sql)} from plumbline.resource r
    join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
    where ${inScope(sql, scope, params)} ${selectorCondition(sql, params.labels)}
    order by r.tenant, r.name limit ${params.limit + 1}`;
  return { rows: rows.slice(0, params.limit), more: rows.length > params.limit };
}

function inScope(sql: Sql, scope: Scope, params: ListParams): ReturnType<typeof selectorCondition> {
  return sql`r.api_group = ${params.group} and r.kind = ${params.kind}
    and ${inTenant(sql, scope, params.tenant, sql`r.tenant`)}
    ${params.name === undefined ? sql`` : sql`and r.name = ${params.name}`}
    ${afterCondition(sql, params)}`;
}

function afterCondition(sql: Sql, { after, tenant }: ListParams): ReturnType<typeof selectorCondition> {
  if (after === undefined) return sql``;
  return tenant === undefined
    ? sql`and (r.tenant, r.name) > (${after.tenant}, ${after.name})`
    : sql`and r.name > ${after.name}`;
}
