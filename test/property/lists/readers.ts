/** Readers of lists and snapshots, and what they saw. */

import { parseLabelSelector } from '#core/label-selector.ts';
import type { ListPage, ListParams, ResourceStore } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import type { Random } from '#test/support/random.ts';

export interface SeenList {
  readonly params: ListParams;
  readonly page: ListPage;
}

export interface SeenSnapshot {
  readonly head: NonNullable<ListPage['head']>;
  readonly rows: readonly ResourceRow[];
}

export interface SeenOwnWrite {
  readonly written: string;
  /** Undefined when the list did not have the object. */
  readonly listed: string | undefined;
  readonly hasHead: boolean;
}

const ALL = { tenants: '*' } as const;
const GROUP = 'example.dev';
const SELECTORS = ['', '', '', 'colour=red', 'colour!=red', '!colour', 'colour in (blue,gone)'];

/** Lists one after the other until there are enough that have a head. */
export async function readLists(
  store: ResourceStore,
  tenants: readonly string[],
  random: Random,
  count: number,
): Promise<readonly SeenList[]> {
  const lists: SeenList[] = [];
  for (let withHead = 0; withHead < count;) {
    const params = randomList(tenants, random);
    const page = await store.list(ALL, params);
    if (page.head) withHead += 1;
    lists.push({ params, page });
  }
  return lists;
}

function randomList(tenants: readonly string[], random: Random): ListParams {
  const tenant = random.pick(tenants);
  const isInside = random.chance(0.3);
  return {
    group: GROUP,
    kind: random.pick(['Widget', 'Widget', 'Vault']),
    labels: parseLabelSelector(random.pick(SELECTORS)),
    limit: random.pick([1, 5, 500]),
    ...(random.chance(0.5) && { tenant }),
    ...(random.chance(0.1) && { name: `writer-1-${random.int(0, 9)}` }),
    ...(isInside && { after: { tenant, name: `writer-${random.int(0, 3)}-${random.int(0, 9)}` } }),
  };
}

export async function readSnapshots(store: ResourceStore, count: number): Promise<readonly SeenSnapshot[]> {
  const snapshots: SeenSnapshot[] = [];
  while (snapshots.length < count) {
    const { head, pages, close } = await store.snapshot(ALL, undefined);
    const rows: ResourceRow[] = [];
    for await (const page of pages) rows.push(...page);
    await close();
    snapshots.push({ head, rows });
  }
  return snapshots;
}

/** Writes an object that nobody else writes, and lists it at once. */
export async function readOwnWrites(
  store: ResourceStore,
  tenant: string,
  random: Random,
  count: number,
): Promise<readonly SeenOwnWrite[]> {
  const key = { tenant, group: GROUP, kind: 'Widget', name: 'own' };
  const state = { finalizers: [], labels: '{}', annotations: '{}', ownerReferences: '[]' };
  const seen: SeenOwnWrite[] = [];
  await store.create(ALL, { ...key, ...state, spec: '{}' });
  while (seen.length < count) {
    const spec = JSON.stringify({ size: seen.length });
    const { resourceVersion: written } = await store.update(ALL, key, { ...state, spec }, {});
    const { rows, head } = await store.list(ALL, {
      group: GROUP,
      kind: 'Widget',
      labels: [],
      limit: 500,
      tenant,
      ...(random.chance(0.5) && { name: 'own' }),
    });
    const listed = rows.find((row) => row.name === 'own')?.resourceVersion;
    seen.push({ written, listed, hasHead: head !== undefined });
  }
  return seen;
}
