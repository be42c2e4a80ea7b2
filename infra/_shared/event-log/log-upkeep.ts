/** What retention works with, whoever runs it: a resident loop or one round. */

import { randomUUID } from 'node:crypto';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import type { RunRetentionDeps } from '#functions/publish/run-retention.ts';
import type { Config } from '#infra/_shared/settings/config.ts';

/** Of one process: it holds leases under a name of its own. */
export function logUpkeep(
  sql: Sql,
  { eventRetentionHours, watchGroupIdleDays }: Config,
): Omit<RunRetentionDeps, 'onError'> {
  return {
    retention: postgresRetention(sql),
    groups: postgresWatchGroups(sql),
    leases: postgresLeases(sql, randomUUID()),
    olderThanMs: eventRetentionHours * 3_600_000,
    groupIdleMs: watchGroupIdleDays * 86_400_000,
  };
}
