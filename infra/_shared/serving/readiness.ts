/** Whether a local instance can do its work. */

import type { ReadinessCheck } from '#adapters/node/readiness.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { captureProblems, readOutboxState } from '#adapters/postgres/outbox-state.ts';

/** An older unpublished event means that watchers are cut off from the present. */
const MAX_OUTBOX_AGE_SECONDS = 30;

/** Fails first of all when the process stops, so that nothing new is sent to it. */
export function stopping(signal: AbortSignal): ReadinessCheck {
  return {
    name: 'stopping',
    async check(): Promise<void> {
      if (signal.aborted) throw new Error('the process stops');
    },
  };
}

/** @param lastFailure of publishing, to tell why events are old. */
export function localReadiness(sql: Sql, lastFailure: () => string | undefined): readonly ReadinessCheck[] {
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
        const { oldestSeconds, quarantinedStreams, unreadyTopics } = await readOutboxState(sql);
        if (oldestSeconds <= MAX_OUTBOX_AGE_SECONDS) return;
        const reasons = [
          `the oldest unpublished event is ${Math.round(oldestSeconds)} s old`,
          ...(quarantinedStreams > 0 ? [`${quarantinedStreams} streams are held by quarantined records`] : []),
          ...(unreadyTopics > 0 ? [`${unreadyTopics} streams have no topic`] : []),
          lastFailure() ?? [],
        ];
        throw new Error(reasons.flat().join('; '));
      },
    },
  ];
}
