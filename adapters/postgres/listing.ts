/**
 * Lists at the log's head: exactly the state that results from the events published so far. One snapshot reads the
 * frontier, the rows, and for each object with unpublished records the state before the first of them in place of its
 * row. So a watch from the frontier goes on without a gap and without a step back, whatever is unpublished.
 */

import type { Fragment, Sql } from '#adapters/postgres/client.ts';
import {
  columnsBefore,
  columnsNow,
  inTenant,
  selectorCondition,
  shownColumns,
} from '#adapters/postgres/resource-columns.ts';
import type { Scope } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { ListPage, ListParams, ListPlace } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

/**
 * So many objects at most are looked at for one page of a selector, whether it holds them or not. Measured with 100,000
 * small objects, of which it holds none: 3.4 ms, where a page of 500 without a selector takes 4.0 ms.
 */
const SELECTOR_SCAN_OBJECTS = 10_000;
/** Counting so many takes 6.2 ms. */
const MAX_COUNT = 100_000;
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

/** See the port. */
export async function countAfter(
  sql: Sql,
  scope: Scope,
  params: Pick<ListParams, 'group' | 'kind' | 'tenant' | 'after'>,
): Promise<number | undefined> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int4 as count from (
      select from plumbline.resource r where ${inScope(sql, scope, params)} limit ${MAX_COUNT + 1}) counted`;
  const count = row?.count ?? 0;
  return count > MAX_COUNT ? undefined : count;
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
    select ${columnsNow(sql)} from ${looked(sql, scope, params)} r
    where true ${selected(sql, params)}
      and r.uid not in (select uid from pending)
    order by ${inOrder(sql, params)} limit ${params.limit + 1}`;
  // "r" again, so that the same conditions apply to the state before as to the rows.
  const rewound = sql`
    select ${columnsNow(sql)} from (select ${columnsBefore(sql)} from pending o where o.old_resource_version is not null) r
    where ${inScope(sql, scope, params)} ${selected(sql, params)}
      and not exists (select from looked_to t where (r.tenant, r.name) > (t.tenant, t.name))
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
    looked_to as materialized (${lookedTo(sql, scope, params)}),
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
        'lookedTo', (select jsonb_build_object('tenant', tenant, 'name', name) from looked_to),
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
  readonly lookedTo: ListPlace | null;
}

function toHeadPage(rows: readonly (ResourceRow & { head: HeadJson; uid: string | null })[], limit: number): HeadPage {
  const headJson = rows[0]?.head;
  const found: readonly ResourceRow[] = rows[0]?.uid === null ? [] : rows;
  return {
    ...toPage(found, limit, headJson?.lookedTo),
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
  const rows = await sql<(ResourceRow & { lookedTo: ListPlace | null; uid: string | null })[]>`
    with looked_to as materialized (${lookedTo(sql, scope, params)})
    select (select jsonb_build_object('tenant', tenant, 'name', name) from looked_to) as "lookedTo", r.*
    from (values (1)) always left join (
      select ${shownColumns(sql)} from ${looked(sql, scope, params)} r
      join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
      where true ${selected(sql, params)}
      order by ${inOrder(sql, params)} limit ${params.limit + 1}
    ) r on true
    order by r.tenant, r.name`;
  return toPage(rows[0]?.uid === null ? [] : rows, params.limit, rows[0]?.lookedTo);
}

function toPage(found: readonly ResourceRow[], limit: number, end: ListPlace | null | undefined): ListPage {
  const rows = found.slice(0, limit);
  if (found.length > limit) return { rows, more: true };
  return end ? { rows, more: true, scannedTo: end } : { rows, more: false };
}

/** The objects that a page is chosen from: for a selector, so many of them at most. */
function looked(sql: Sql, scope: Scope, params: ListParams): Fragment {
  if (!isBounded(params)) return sql`(select * from plumbline.resource r where ${inScope(sql, scope, params)})`;
  return sql`(select * from plumbline.resource r where ${inScope(sql, scope, params)}
    order by ${inOrder(sql, params)} limit ${SELECTOR_SCAN_OBJECTS})`;
}

/** The last of them, if there are so many; read from the index alone. In one statement with them: they are the same. */
function lookedTo(sql: Sql, scope: Scope, params: ListParams): Fragment {
  if (!isBounded(params)) return sql`select null as tenant, null as name where false`;
  return sql`select r.tenant, r.name from plumbline.resource r where ${inScope(sql, scope, params)}
    order by ${inOrder(sql, params)} offset ${SELECTOR_SCAN_OBJECTS - 1} limit 1`;
}

/** Within one tenant by name alone: of a nested query, PostgreSQL does not see that the tenant is always the same. */
function inOrder(sql: Sql, { tenant }: ListParams): Fragment {
  return tenant === undefined ? sql`r.tenant, r.name` : sql`r.name`;
}

function isBounded({ labels, except, name }: ListParams): boolean {
  return (labels.length > 0 || except !== undefined) && name === undefined;
}

/** What is asked of each object that is looked at. */
function selected(sql: Sql, { labels, except }: ListParams): Fragment {
  const named = selectorCondition(sql, labels);
  if (except === undefined) return named;
  return sql`${named} and r.name <> all (${[...except.names]}::text[]) and r.tenant <> all (${[...except.tenants]}::text[])`;
}

type ScopeParams = Pick<ListParams, 'group' | 'kind' | 'tenant' | 'name' | 'after'>;

function inScope(sql: Sql, scope: Scope, params: ScopeParams): Fragment {
  const { group, kind, tenant, name } = params;
  return sql`r.api_group = ${group} and r.kind = ${kind}
    and ${inTenant(sql, scope, tenant, sql`r.tenant`)}
    ${name === undefined ? sql`` : sql`and r.name = ${name}`}
    ${afterCondition(sql, params)}`;
}

function afterCondition(sql: Sql, { after, tenant }: ScopeParams): Fragment {
  if (after === undefined) return sql``;
  return tenant === undefined
    ? sql`and (r.tenant, r.name) > (${after.tenant}, ${after.name})`
    : sql`and r.name > ${after.name}`;
}
