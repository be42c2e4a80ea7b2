/** What a log says that a list must show: its events applied one after the other, up to a point. */

import type { StreamEvent } from '#core/event.ts';
import { matchesSelector } from '#core/label-selector.ts';
import type { EventLog, LogPoint } from '#core/ports/event-log.ts';
import type { ListParams } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

/** Each stream's events, from the first. */
export type Replay = ReadonlyMap<bigint, readonly StreamEvent[]>;

/** The fields of a row as they are compared; what else a driver puts on it is not. */
const FIELDS = [
  'uid',
  'tenant',
  'group',
  'version',
  'kind',
  'name',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'finalizers',
  'labels',
  'annotations',
  'ownerReferences',
  'spec',
  'status',
] as const satisfies readonly (keyof ResourceRow)[];

export async function readReplay(log: EventLog, streams: readonly bigint[]): Promise<Replay> {
  return new Map(await Promise.all(streams.map(async (stream) => [stream, await readStream(log, stream)] as const)));
}

async function readStream(log: EventLog, stream: bigint): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = [];
  for (;;) {
    const last = events.at(-1);
    const after = last ? { seq: last.seq, position: last.position } : { seq: 0n, position: 0n };
    const read = await log.read(stream, after, { maxCount: 1000, maxBytes: 8 * 1024 * 1024 });
    events.push(...read.events);
    if (!read.more) return events;
  }
}

/** The objects at these points, in the order of lists. */
export function stateAt(replay: Replay, head: ReadonlyMap<bigint, LogPoint>): readonly ResourceRow[] {
  const state = new Map<string, ResourceRow>();
  for (const [stream, { seq }] of head) {
    for (const { type, resource } of (replay.get(stream) ?? []).slice(0, Number(seq))) {
      if (type === 'DELETED') state.delete(resource.uid);
      else state.set(resource.uid, resource);
    }
  }
  return [...state.values()].toSorted(byTenantAndName);
}

/** The page of a state that these parameters ask for. */
export function pageOf(
  state: readonly ResourceRow[],
  params: ListParams,
): { rows: readonly ResourceRow[]; more: boolean } {
  const { after } = params;
  const rows = state.filter(
    (row) =>
      row.group === params.group &&
      row.kind === params.kind &&
      (params.tenant === undefined || row.tenant === params.tenant) &&
      (params.name === undefined || row.name === params.name) &&
      (after === undefined || compare([row.tenant, row.name], [after.tenant, after.name]) > 0) &&
      matchesSelector(params.labels, JSON.parse(row.labels) as Record<string, string>),
  );
  return { rows: rows.slice(0, params.limit), more: rows.length > params.limit };
}

/** Only what is compared. */
export function plain(rows: readonly ResourceRow[]): readonly object[] {
  return rows.map((row) => Object.fromEntries(FIELDS.map((field) => [field, row[field]])));
}

function byTenantAndName(one: ResourceRow, other: ResourceRow): number {
  return compare([one.tenant, one.name], [other.tenant, other.name]);
}

function compare(
  [tenant, name]: readonly [string, string],
  [otherTenant, otherName]: readonly [string, string],
): number {
  if (tenant !== otherTenant) return tenant < otherTenant ? -1 : 1;
  if (name === otherName) return 0;
  return name < otherName ? -1 : 1;
}
