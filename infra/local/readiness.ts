/** Whether a local instance can do its work. */

import type { ReadinessCheck } from '#adapters/node/readiness.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { captureProblems, readOutboxState } from '#adapters/postgres/outbox-state.ts';

/** An older unpublished event means that watchers are cut off from the present. */
const MAX_OUTBOX_AGE_SECONDS = 30;

export function localReadiness(sql: Sql): readonly ReadinessCheck[] {
  return [
    {
      name: 'database',
      async check(): Promise<void> {
        await sql`select 1`;
      },
    },
    {
      name: 'capture',
      async check(): Promise<void> {
        const problems = await captureProblems(sql);
        if (problems.length > 0) throw new Error(problems.join('; '));
      },
    },
    {
      name: 'publishing',
      async check(): Promise<void> {
        const { oldestSeconds, quarantinedStreams } = await readOutboxState(sql);
        if (oldestSeconds <= MAX_OUTBOX_AGE_SECONDS) return;
        const held = quarantinedStreams > 0 ? `; ${quarantinedStreams} streams are held by quarantined records` : '';
        throw new Error(`the oldest unpublished event is ${Math.round(oldestSeconds)} s old${held}`);
      },
    },
  ];
}
