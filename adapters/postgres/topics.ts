/** The topics that there should be, in PostgreSQL; see sql/0007_topic.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { CurrentTopic, DueTopic, Topics, TopicSettings } from '#core/ports/topics.ts';

/** Watchers that are behind when their tenant is deleted have so long to read its end. */
const REMOVE_AFTER_MS = 900_000;
/** A broker that starts does not know its topics for a moment; one that is asked says so as if they were not there. */
const REPLACE_AFTER_MS = 10_000;

interface DueRow {
  readonly name: string;
  readonly stream: bigint;
  readonly deed: 'ensure' | 'remove';
  readonly retentionMs: bigint | null;
  readonly retentionBytes: bigint | null;
}

type CurrentRow = Omit<CurrentTopic, 'lastPosition' | 'identity'> & {
  readonly lastPosition: bigint | null;
  readonly identity: string | null;
};

export function postgresTopics(sql: Sql): Topics {
  return {
    async due({ retentionMs, retentionBytes }: TopicSettings): Promise<readonly DueTopic[]> {
      const rows = await guarded(
        'topics',
        () => sql<DueRow[]>`
        select name, stream, deed, retention_ms as "retentionMs", retention_bytes as "retentionBytes"
        from plumbline.due_topics(${retentionMs}, ${retentionBytes ?? null}, ${REMOVE_AFTER_MS} * interval '1 millisecond')`,
      );
      return rows.map(toDue);
    },

    async markReady(name: string, { retentionMs, retentionBytes }: TopicSettings, identity?: string): Promise<void> {
      await guarded(
        'topics',
        () =>
          sql`select plumbline.mark_topic_ready(${name}, ${retentionMs}, ${retentionBytes ?? null}, ${identity ?? null})`,
      );
    },

    async reportUnready(name: string, reason: string): Promise<void> {
      await guarded('topics', () => sql`select plumbline.report_unready_topic(${name}, ${reason})`);
    },

    async markRemoved(name: string): Promise<void> {
      await guarded('topics', () => sql`select plumbline.mark_topic_removed(${name})`);
    },

    async current(): Promise<readonly CurrentTopic[]> {
      const rows = await guarded(
        'topics',
        () => sql<CurrentRow[]>`
        select t.name, t.stream, case when f.first_seq > t.first_seq then f.start_position + 1 else 0 end as "firstPosition",
          case when f.last_seq >= t.first_seq then f.last_position end as "lastPosition",
          t.missing_since is not null as "isMissing", t.identity
        from plumbline.frontier f join plumbline.topic t on t.name = f.topic
        where t.ready_at is not null and t.removed_at is null order by t.stream`,
      );
      return rows.map((row) => ({
        ...row,
        lastPosition: row.lastPosition ?? undefined,
        identity: row.identity ?? undefined,
      }));
    },

    async markMissing(name: string): Promise<boolean> {
      const [row] = await guarded(
        'topics',
        () => sql<{ isLost: boolean }[]>`
        select plumbline.mark_topic_missing(${name}, ${REPLACE_AFTER_MS} * interval '1 millisecond') as "isLost"`,
      );
      return row?.isLost ?? false;
    },

    async markFound(name: string): Promise<void> {
      await guarded('topics', () => sql`select plumbline.mark_topic_found(${name})`);
    },

    async replace(name: string, reason: string): Promise<boolean> {
      const [row] = await guarded(
        'topics',
        () => sql<{ isNew: boolean }[]>`select plumbline.replace_topic(${name}, ${reason}) as "isNew"`,
      );
      return row?.isNew ?? false;
    },
  };
}

function toDue({ name, stream, deed, retentionMs, retentionBytes }: DueRow): DueTopic {
  if (deed === 'remove') return { name, stream, deed };
  return {
    name,
    stream,
    deed,
    settings: {
      retentionMs: Number(retentionMs),
      retentionBytes: retentionBytes === null ? undefined : Number(retentionBytes),
    },
  };
}
