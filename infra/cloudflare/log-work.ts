/** Publishing, and the topics that it needs: each once, and when to do so again if something was left. */

import type { Notice } from '#adapters/workers/notices.ts';
import type { Outbox } from '#core/ports/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import type { InstanceLog } from '#infra/_shared/event-log/event-log.ts';
import type { PublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';

export interface LogWorkDeps {
  readonly eventLog: Pick<InstanceLog, 'outbox' | 'prepare'>;
  /** Knows of each stream that can be published, also of those that failed just now. */
  readonly pending: Pick<Outbox, 'pendingStreams'>;
  readonly reports: PublisherReports;
  /** Told what was published. */
  readonly onNews: (notices: readonly Notice[]) => void;
  /** There are new topics: what waited for them can be published. */
  readonly onTopics: () => void;
}

/** In how many milliseconds it is to be done again, if nobody asks for it before; undefined: nothing is left. */
export type Again = number | undefined;

export interface LogWork {
  publish(): Promise<Again>;
  keepTopics(): Promise<Again>;
}

/** No batch is begun later: an alarm goes on. */
const PUBLISH_BUDGET_MS = 25_000;
const SOONEST_MS = 1_000;
/** Cron comes each minute anyway. */
const LATEST_MS = 30_000;
const INSPECT_EVERY_MS = 10_000;

export function createLogWork({ eventLog, pending, reports, onNews, onTopics }: LogWorkDeps): LogWork {
  /** Streams that could not be published, or that another publisher held, which may have died. */
  const left = new Set<bigint>();
  let againMs = SOONEST_MS;
  let inspectAtMs = 0;

  return {
    async publish() {
      const ports = { ...reports, outbox: { ...eventLog.outbox, publishBatch }, onPublished };
      const budget = AbortSignal.timeout(PUBLISH_BUDGET_MS);
      await publishOnce(ports, budget);
      if (budget.aborted) return SOONEST_MS;
      if (left.size === 0) return undefined;
      const waiting = await pending.pendingStreams();
      if (waiting.some((stream) => left.has(stream))) {
        const afterMs = againMs;
        againMs = Math.min(againMs * 2, LATEST_MS);
        return afterMs;
      }
      left.clear();
      againMs = SOONEST_MS;
      return undefined;
    },

    async keepTopics() {
      const withInspection = performance.now() >= inspectAtMs;
      try {
        const { isProvisioned, isSound, hasNew } = await eventLog.prepare(withInspection);
        if (withInspection && isSound) inspectAtMs = performance.now() + INSPECT_EVERY_MS;
        if (hasNew) onTopics();
        return isProvisioned && isSound ? undefined : SOONEST_MS;
      } catch (error) {
        reports.onTopicError(error, undefined);
        return SOONEST_MS;
      }
    },
  };

  async function publishBatch(...args: Parameters<Outbox['publishBatch']>): ReturnType<Outbox['publishBatch']> {
    const [stream] = args;
    left.add(stream);
    const result = await eventLog.outbox.publishBatch(...args);
    if (result.outcome !== 'busy') left.delete(stream);
    return result;
  }

  function onPublished(stream: bigint, count: number): void {
    reports.onPublished(stream, count);
    onNews([
      { channel: 'plumbline_event_log', payload: String(stream) },
      { channel: 'plumbline_stream', payload: '' },
    ]);
  }
}
