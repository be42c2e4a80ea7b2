/** Waiting for others to wait: how tests know that a statement has reached a lock. */

import type { Sql } from '#adapters/postgres/client.ts';
import { vi } from 'vitest';

/** Resolves when a connection of this database waits for a lock. @param applicationName of that connection; any by default. */
export async function untilLockWaits(sql: Sql, applicationName?: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const waiting = await sql`select from pg_stat_activity where datname = current_database()
        and application_name = coalesce(${applicationName ?? null}::text, application_name) and wait_event_type = 'Lock'`;
      if (waiting.length === 0) throw new Error(`${applicationName ?? 'nobody'} waits for a lock`);
    },
    { timeout: 5_000, interval: 1 },
  );
}
