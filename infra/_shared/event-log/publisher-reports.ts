/** What publishing tells: counted, logged, and kept for who asks whether the instance is ready. */

import type { Logger } from '#core/ports/logger.ts';
import { AppendFailed } from '#functions/publish/manifest-outbox.ts';
import { isUnavailable } from '#core/status-error.ts';
import type { Metrics } from '#adapters/node/metrics.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';

export interface PublisherReports {
  onPublished(stream: bigint, count: number): void;
  onQuarantined(stream: bigint, reason: string): void;
  onStreamError(stream: bigint, error: unknown): void;
  onError(error: unknown): void;
  onTopicLost(topic: string, reason: string): void;
  onTopicError(error: unknown, topic: string | undefined): void;
  /** What failed last, if nothing has been published since. */
  lastFailure(): string | undefined;
}

/** While the log is away every stream fails, again and again: one line tells it, with the number of the others. */
const LOG_EVERY_MS = 10_000;

export function createPublisherReports(metrics: Metrics, logger: Logger): PublisherReports {
  let failure: string | undefined;
  let isQuietUntilMs = 0;
  let untold = 0;
  return { onPublished, onQuarantined, onStreamError, onError, onTopicLost, onTopicError, lastFailure: () => failure };

  function onPublished(_stream: bigint, count: number): void {
    failure = undefined;
    metrics.published.inc(count);
  }

  function onQuarantined(stream: bigint, reason: string): void {
    logger.error({ stream: String(stream), reason }, 'a record cannot be published and holds its stream');
  }

  function onStreamError(stream: bigint, error: unknown): void {
    metrics.publishErrors.inc();
    warn({ stream: String(stream), err: error }, 'a stream cannot be published; it is tried again');
  }

  function onError(error: unknown): void {
    metrics.publishErrors.inc();
    warn({ err: error }, 'publishing failed; it is tried again');
  }

  function onTopicLost(topic: string, reason: string): void {
    metrics.lostTopics.inc();
    logger.error({ topic, reason }, 'a topic is lost: its stream goes on in another, and readers begin anew');
  }

  function onTopicError(error: unknown, topic: string | undefined): void {
    warn({ topic, err: error }, 'a topic cannot be looked after; it is tried again');
  }

  function warn(fields: Readonly<Record<string, unknown>>, message: string): void {
    failure = causeOf(fields['err']);
    untold += 1;
    if (performance.now() < isQuietUntilMs) return;
    // That a dependency is away is told by its words; anything else with where it came from.
    const { err, ...rest } = fields;
    const told = isAway(err) ? { reason: failure } : { err };
    logger.warn({ ...rest, ...told, ...(untold > 1 && { sinceLastTime: untold }) }, message);
    isQuietUntilMs = performance.now() + LOG_EVERY_MS;
    untold = 0;
  }
}

/** The innermost that speaks of the log. */
function causeOf(error: unknown): string {
  return messageOf(appendFailure(error) ?? error);
}

function isAway(error: unknown): boolean {
  return isUnavailable(appendFailure(error) ?? error);
}

function appendFailure(error: unknown): unknown {
  return error instanceof AppendFailed ? error.cause : undefined;
}
