/** Housekeeping of the queue of passes in PostgreSQL; see sql/0009_work_item.sql, sql/0010_pass.sql, sql/0022_owner.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { WorkUpkeep } from '#core/ports/work-queue.ts';

const PAGE = 1_000;
/** Each is locked until the others of its page are told too. */
const TOLD_AT_ONCE = 100;
/** A deletion may last so long before it is told what it waits for. */
const PATIENCE_MS = 60_000;
/**
 * Changes that one transaction looks at, each in a subtransaction: it holds the locks of what it writes, and above 64
 * subtransactions every snapshot taken meanwhile becomes slower.
 */
const COLLECTED_AT_ONCE = 50;
const KEEP_EVENTS_MS = 7 * 24 * 3_600_000;

export function postgresWorkUpkeep(sql: Sql): WorkUpkeep {
  return {
    async reportAlive(controllers: readonly string[]): Promise<void> {
      await guarded('work queue', () => sql`select plumbline.report_alive(${[...controllers]}::text[])`);
    },

    async fillItems(controller: string): Promise<void> {
      await eachPage(
        'work queue',
        (after) => sql<Page[]>`select plumbline.fill_items(${controller}, ${after}::uuid, ${PAGE}) as last`,
      );
    },

    async reportBlockedDeletions(): Promise<void> {
      await eachPage(
        'work queue',
        (after) => sql<Page[]>`
        select plumbline.report_blocked_deletions(
          ${PATIENCE_MS} * interval '1 millisecond', ${after}::text::timestamptz, ${TOLD_AT_ONCE})::text as last`,
      );
    },

    async collect(): Promise<number> {
      const [row] = await guarded(
        'collection',
        () => sql<{ handled: number }[]>`select plumbline.collect(${COLLECTED_AT_ONCE}) as handled`,
      );
      return row?.handled ?? 0;
    },

    async sweepOwners(): Promise<void> {
      await eachPage(
        'collection',
        (after) => sql<Page[]>`select plumbline.sweep_owners(${after}::uuid, ${PAGE}) as last`,
      );
    },

    async expireEvents(): Promise<void> {
      await guarded(
        'work queue',
        () => sql`
        select plumbline.expire_object_events(clock_timestamp() - ${KEEP_EVENTS_MS} * interval '1 millisecond')`,
      );
    },

    async installation(): Promise<string> {
      const [row] = await guarded('installation', () => sql<{ id: string }[]>`select id from plumbline.installation`);
      if (!row) throw new Error('table installation has no row; it must have one');
      return row.id;
    },
  };
}

interface Page {
  /** Null behind the last page. */
  readonly last: string | null;
}

/** Each page is a transaction of its own, and begins behind the last of the one before. */
async function eachPage(subject: string, pageAfter: (after: string | null) => Promise<readonly Page[]>): Promise<void> {
  for (let after: string | null = null; ;) {
    const [row] = await guarded(subject, () => pageAfter(after));
    if (row?.last == null) return;
    after = row.last;
  }
}
