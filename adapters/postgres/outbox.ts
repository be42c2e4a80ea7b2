/** The outbox, published into the event log of the same database: one statement moves a batch, exactly once. */

import postgres from 'postgres';
import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { type BatchLimits, type Outbox, type PublishResult, RecordRejected } from '#core/ports/outbox.ts';

/** What one event may weigh; a larger one is quarantined. Eight times what the API accepts. */
export const MAX_RECORD_BYTES: number = 8 * 1024 * 1024;

export function postgresOutbox(sql: Sql): Outbox {
  return {
    async pendingStreams(): Promise<readonly bigint[]> {
      const rows = await statement(
        () => sql<{ stream: bigint }[]>`
        select stream from plumbline.pending_streams() stream order by stream`,
      );
      return rows.map((row) => row.stream);
    },

    async publishBatch(stream: bigint, { maxCount, maxBytes }: BatchLimits): Promise<PublishResult> {
      return statement(async () => {
        const [result] = await sql<PublishResult[]>`
          select outcome, published
          from plumbline.publish_batch(${String(stream)}::bigint, ${maxCount}, ${maxBytes}, ${MAX_RECORD_BYTES})`;
        if (!result) throw new Error('publish_batch returned no row');
        return result;
      });
    },

    async quarantineHead(stream: bigint, reason: string): Promise<void> {
      await statement(() => sql`select plumbline.quarantine_head(${String(stream)}::bigint, ${reason})`);
    },
  };
}

async function statement<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof postgres.PostgresError && RECORD_FAULTS.has(error.code.slice(0, 2))) {
      throw new RecordRejected(error.message, { cause: error });
    }
    throw toCallerError(error, 'outbox');
  }
}

/** SQLSTATE classes: data exception, integrity constraint violation, program limit exceeded. */
const RECORD_FAULTS = new Set(['22', '23', '54']);
