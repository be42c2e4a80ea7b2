/** What a page costs among 100,000 objects: told by the plans of the very statements that the store sends. */

import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { Sql } from '#adapters/postgres/client.ts';
import { countAfter, listAtHead } from '#adapters/postgres/listing.ts';
import { parseLabelSelector } from '#core/label-selector.ts';
import type { ListPage, ListParams } from '#core/ports/resources.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const OBJECTS = 100_000;
const LIMIT = 500;
const SCANNED_FOR_SELECTOR = 10_000;
const ALL = { tenants: '*' } as const;
const WIDGETS = { group: 'example.dev', kind: 'Widget', labels: [], limit: LIMIT } as const;
/** The order in the database's collation. */
const nameOf = (n: number): string => `w${String(n).padStart(6, '0')}`;

interface Statement {
  readonly text: string;
  readonly parameters: unknown[];
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

let database: PreparedDatabase;
let sql: Sql;
const sent: Statement[] = [];

beforeAll(async () => {
  database = await prepareDatabase(['big', 'small']);
  await database.sql`
    insert into plumbline.resource (tenant, api_group, kind, name, spec, labels)
    select 'big', 'example.dev', 'Widget', 'w' || lpad(i::text, 6, '0'), '{"size": 0}',
      case when i = ${OBJECTS} then '{"last": "yes"}'::jsonb else '{"app": "blue"}' end
    from generate_series(1, ${OBJECTS}::int) i`;
  await database.sql`
    insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select 'small', 'example.dev', 'Widget', 's' || i, '{}' from generate_series(1, 3) i`;
  // As if all of it were published.
  await database.sql`truncate plumbline.outbox`;
  await database.sql`vacuum analyze plumbline.resource`;
  sql = postgres(database.url, {
    max: 1,
    types: { bigint: postgres.BigInt },
    debug: (_connection, text, parameters) => sent.push({ text, parameters: [...parameters] }),
  });
});

afterAll(async () => {
  await sql?.end();
  await database?.close();
});

async function list(params: Partial<ListParams>): Promise<{ page: ListPage; scans: readonly Plan[] }> {
  sent.length = 0;
  const page = await listAtHead(sql, ALL, { ...WIDGETS, ...params });
  const statements = sent.filter(({ text }) => text.includes('plumbline.resource'));
  expect(statements.length).toBeGreaterThan(0);
  const scans: Plan[] = [];
  for (const { text, parameters } of statements) {
    const [row] = await database.sql.unsafe<{ 'QUERY PLAN': { Plan: Plan }[] }[]>(
      `explain (analyze, format json) ${text}`,
      parameters as never[],
    );
    const [explained] = row?.['QUERY PLAN'] ?? [];
    if (explained) scans.push(...scansOf(explained.Plan));
  }
  return { page, scans };
}

/** Where a plan reads objects. */
function scansOf(plan: Plan): Plan[] {
  const own = plan['Relation Name'] === 'resource' ? [plan] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}

function rowsRead(scans: readonly Plan[]): number {
  const read = scans.map(
    (scan) => (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops'],
  );
  return read.reduce((sum, rows) => sum + rows, 0);
}

const IN_TENANT = { tenant: 'big' };
const MIDDLE = { tenant: 'big', name: nameOf(50_000) };

describe('a page of 500 is one range scan of the index that has its order, and reads no more than it shows', () => {
  test.for([
    ['the first page in a tenant', IN_TENANT, nameOf(LIMIT)],
    ['a page in the middle of it', { ...IN_TENANT, after: MIDDLE }, nameOf(50_000 + LIMIT)],
    ['its last page', { ...IN_TENANT, after: { tenant: 'big', name: nameOf(OBJECTS - 10) } }, nameOf(OBJECTS)],
    ['the first page over all tenants', {}, nameOf(LIMIT)],
    ['a page in the middle over all tenants', { after: MIDDLE }, nameOf(50_000 + LIMIT)],
  ] as const)('%s', async ([, params, last]) => {
    const { page, scans } = await list(params);
    expect(page.rows.at(-1)?.name).toBe(last);
    expect(scans.map((scan) => [scan['Node Type'], scan['Index Name']])).toEqual([
      ['Index Scan', 'resource_name_is_unique'],
    ]);
    expect(rowsRead(scans)).toBeLessThanOrEqual(LIMIT + 1);
  });
});

describe('a selector', () => {
  test.for([
    ['in a tenant', IN_TENANT],
    ['in a tenant, from the middle', { ...IN_TENANT, after: MIDDLE }],
    ['over all tenants', {}],
  ] as const)('that nothing meets reads a bounded part of the index, %s', async ([, params]) => {
    const { page, scans } = await list({ ...params, labels: parseLabelSelector('app=none') });
    expect(page).toMatchObject({ rows: [], more: true, scannedTo: { tenant: 'big' } });
    for (const scan of scans) expect(['Index Scan', 'Index Only Scan']).toContain(scan['Node Type']);
    // Once in the index to find the end, once with the objects.
    expect(rowsRead(scans)).toBeLessThanOrEqual(2 * SCANNED_FOR_SELECTOR);
  });

  test('finds what is at the very end, page by page, and nothing twice', async () => {
    const found: string[] = [];
    let pages = 0;
    let after: ListParams['after'];
    for (;;) {
      const page = await listAtHead(sql, ALL, {
        ...WIDGETS,
        labels: parseLabelSelector('last in (yes)'),
        ...(after && { after }),
      });
      pages++;
      found.push(...page.rows.map(({ name }) => name));
      if (!page.more) break;
      after = page.scannedTo ?? page.rows.at(-1);
    }
    expect(found).toEqual([nameOf(OBJECTS)]);
    expect(pages).toBe(Math.ceil((OBJECTS + 3) / SCANNED_FOR_SELECTOR));
  });

  test('that everything meets gives full pages', async () => {
    const { page, scans } = await list({ ...IN_TENANT, labels: parseLabelSelector('app') });
    expect(page.rows).toHaveLength(LIMIT);
    expect(page.scannedTo).toBeUndefined();
    expect(rowsRead(scans)).toBeLessThanOrEqual(SCANNED_FOR_SELECTOR + LIMIT + 1);
  });
});

test('what follows a page is counted as far as 100,000 objects', async () => {
  const { group, kind } = WIDGETS;
  const after = (n: number): { tenant: string; name: string } => ({ tenant: 'big', name: nameOf(n) });
  expect(await countAfter(sql, ALL, { group, kind, tenant: 'big', after: after(500) })).toBe(OBJECTS - 500);
  expect(await countAfter(sql, ALL, { group, kind, after: after(500) })).toBe(OBJECTS - 500 + 3);
  expect(await countAfter(sql, ALL, { group, kind, after: { tenant: 'a', name: '' } })).toBeUndefined();
  expect(await countAfter(sql, { tenants: ['small'] }, { group, kind, after: after(1) })).toBe(3);
});
