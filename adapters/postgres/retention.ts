/** Housekeeping of the event log in PostgreSQL: a partition a day, made ahead and dropped whole. */

import { type Sql, guarded } from '#adapters/postgres/client.ts';
import type { Retention } from '#core/ports/retention.ts';

const DAYS_AHEAD = 3;
const BATCHES_AT_ONCE = 10_000;

export function postgresRetention(sql: Sql): Retention {
  return {
    async prepare(): Promise<void> {
      await guarded('retention', () => sql`select plumbline.ensure_event_log_partitions(${DAYS_AHEAD})`);
    },

    async expire(olderThanMs: number): Promise<number> {
      const [row] = await guarded(
        'retention',
        () => sql<{ dropped: number }[]>`
        select plumbline.expire_event_log(clock_timestamp() - ${olderThanMs} * interval '1 millisecond') as dropped`,
      );
      await forgetBatches();
      return row?.dropped ?? 0;
    },
  };

  /** A few at a time: there is one for nearly every event, and nobody waits for them. */
  async function forgetBatches(): Promise<void> {
    for (;;) {
      const [row] = await guarded(
        'retention',
        () => sql<{ forgotten: number }[]>`select plumbline.forget_batches(${BATCHES_AT_ONCE}) as forgotten`,
      );
      if ((row?.forgotten ?? 0) < BATCHES_AT_ONCE) return;
    }
  }
}
