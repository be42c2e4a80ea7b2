/** The log as the one truth that lists and watches are compared with. */

import type { Sql } from '#adapters/postgres/client.ts';

export interface LogEntry {
  readonly tenant: string;
  readonly seq: number;
  readonly id: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly uid: string;
  readonly version: string;
}

/** Each tenant's events, in order. */
export type Log = ReadonlyMap<string, readonly LogEntry[]>;

export async function readLog(sql: Sql): Promise<Log> {
  const rows = await sql<(LogEntry & { seq: bigint })[]>`
    select tenant, seq, event_id as id, type, uid, resource_version::text as version
    from plumbline.event_log order by stream, seq`;
  const entries = rows.map((row): LogEntry => ({ ...row, seq: Number(row.seq) }));
  return Map.groupBy(entries, (entry) => entry.tenant);
}

/** Version by uid, after this many events of a tenant. */
export function stateAfter(log: Log, tenant: string, seq: number): Record<string, string> {
  const state = new Map<string, string>();
  for (const { uid, type, version } of (log.get(tenant) ?? []).slice(0, seq)) {
    if (type === 'DELETED') state.delete(uid);
    else state.set(uid, version);
  }
  return Object.fromEntries(state);
}

/** The ids of a tenant's events from one number to another, both included. */
export function idsBetween(log: Log, tenant: string, first: number, last: number): readonly string[] {
  return (log.get(tenant) ?? []).slice(first - 1, last).map((entry) => entry.id);
}

/** The number of each tenant's last event. */
export function headsOf(log: Log): ReadonlyMap<string, number> {
  return new Map([...log].map(([tenant, entries]) => [tenant, entries.length]));
}
