/** The streams of tenants through their lives, in PostgreSQL; see sql/0012_tenant_stream.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { TenantStream, TenantStreams } from '#core/ports/tenant-streams.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';

type Nullable<T> = { readonly [K in keyof T]: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] };
type Row = Omit<Nullable<TenantStream>, 'retentionMs' | 'retentionBytes'> & {
  readonly retentionMs: bigint | null;
  readonly retentionBytes: bigint | null;
};

const EVENTS_AT_ONCE = 5_000;

/** @param admin of the brokers; absent when the log is PostgreSQL's and there never was another. */
export function postgresTenantStreams(sql: Sql, admin: TopicAdmin | undefined): TenantStreams {
  return {
    async find(tenant: string): Promise<TenantStream | undefined> {
      const [row] = await guarded(
        'stream',
        () => sql<Row[]>`
        select stream as id, log, topic, topics, is_topic_ready as "isTopicReady",
          coalesce(is_topic_missing, false) as "isTopicMissing", problem, retention_ms as "retentionMs",
          retention_bytes as "retentionBytes", extract(epoch from clock_timestamp() - opened_at)::float8 * 1000 as "openForMs",
          is_closed as "isClosed", is_removed as "isRemoved", unpublished::int4, quarantine
        from plumbline.tenant_stream(${tenant})`,
      );
      return row && toStream(row);
    },

    async objects(tenant: string): Promise<ReadonlyMap<string, number>> {
      const rows = await guarded(
        'tenant',
        () => sql<{ kind: string; count: number }[]>`
        select kind, count::int4 from plumbline.tenant_objects(${tenant})`,
      );
      return new Map(rows.map(({ kind, count }) => [kind, count]));
    },

    async close(tenant: string): Promise<boolean> {
      const [row] = await guarded(
        'tenant',
        () => sql<{ isClosed: boolean }[]>`select plumbline.close_stream(${tenant}) as "isClosed"`,
      );
      return row?.isClosed ?? false;
    },

    async drain(stream: bigint, purge: boolean): Promise<number | undefined> {
      const [row] = await guarded(
        'stream',
        () =>
          sql<{ forMs: number | null }[]>`
          select extract(epoch from clock_timestamp() - plumbline.drain_stream(${String(stream)}::bigint, ${purge}))::float8
            * 1000 as "forMs"`,
      );
      return row?.forMs ?? undefined;
    },

    async removeEvents(stream: TenantStream): Promise<boolean> {
      if (stream.topics.length > 0 && !(await topicsAreGone(stream.topics))) return false;
      const [row] = await guarded(
        'stream',
        () => sql<{ isEmpty: boolean }[]>`
        select plumbline.remove_stream_events(${String(stream.id)}::bigint, ${EVENTS_AT_ONCE}) as "isEmpty"`,
      );
      return row?.isEmpty ?? false;
    },

    async markRemoved(stream: bigint): Promise<void> {
      await guarded('stream', () => sql`select plumbline.mark_stream_removed(${String(stream)}::bigint)`);
    },
  };

  /** Asks for their removal, and believes it once the brokers say that they know none of them. */
  async function topicsAreGone(topics: readonly string[]): Promise<boolean> {
    // Those of brokers that are not in use any more stay until their operator deletes them.
    if (!admin) return true;
    const there = await admin.extents(topics);
    const left = topics.filter((topic) => there.get(topic) !== 'missing');
    for (const topic of left) await admin.remove(topic);
    return left.length === 0;
  }
}

function toStream(row: Row): TenantStream {
  return {
    ...row,
    topic: row.topic ?? undefined,
    problem: row.problem ?? undefined,
    quarantine: row.quarantine ?? undefined,
    retentionMs: row.retentionMs === null ? undefined : Number(row.retentionMs),
    retentionBytes: row.retentionBytes === null ? undefined : Number(row.retentionBytes),
  };
}
