/** Housekeeping of the event log in PostgreSQL: a partition a day, made ahead and dropped whole. */

import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import type { Retention } from '#core/ports/retention.ts';

const DAYS_AHEAD = 3;

export function postgresRetention(sql: Sql): Retention {
  return {
    async prepare(): Promise<void> {
      await statement(() => sql`select plumbline.ensure_event_log_partitions(${DAYS_AHEAD})`);
    },

    async expire(olderThanMs: number): Promise<number> {
      const [row] = await statement(
        () => sql<{ dropped: number }[]>`
        select plumbline.expire_event_log(clock_timestamp() - ${olderThanMs} * interval '1 millisecond') as dropped`,
      );
      return row?.dropped ?? 0;
    },
  };
}

async function statement<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toCallerError(error, 'retention');
  }
}
