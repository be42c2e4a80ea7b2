/** Housekeeping of the queue of passes in PostgreSQL; see sql/0009_work_item.sql, sql/0010_pass.sql, sql/0022_owner.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { WorkUpkeep } from '#core/ports/work-queue.ts';

const PAGE = 1_000;
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
      for (let after: string | null = null; ;) {
        const [row]: { last: string | null }[] = await guarded(
          'work queue',
          () => sql<{ last: string | null }[]>`
          select plumbline.fill_items(${controller}, ${after}::uuid, ${PAGE}) as last`,
        );
        if (row?.last == null) return;
        after = row.last;
      }
    },

    async reportBlockedDeletions(): Promise<void> {
      await guarded(
        'work queue',
        () => sql`select plumbline.report_blocked_deletions(${PATIENCE_MS} * interval '1 millisecond')`,
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
      for (let after: string | null = null; ;) {
        const [row]: { last: string | null }[] = await guarded(
          'collection',
          () => sql<{ last: string | null }[]>`select plumbline.sweep_owners(${after}::uuid, ${PAGE}) as last`,
        );
        if (row?.last == null) return;
        after = row.last;
      }
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
