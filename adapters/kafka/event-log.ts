/**
 * The event log in Kafka: one topic of one partition per stream, which the index names. A position is an offset in it.
 * Topics are read directly, by offset: no consumer groups.
 */

import type { SessionDeps } from '#adapters/kafka/client/session.ts';
import { holdLink } from '#adapters/kafka/client/links.ts';
import { createRanges } from '#adapters/kafka/reading/ranges.ts';
import { createReading } from '#adapters/kafka/reading/reading.ts';
import { createTopicStarts } from '#adapters/kafka/reading/starts.ts';
import { createTailing } from '#adapters/kafka/reading/tailing.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { LogIndex } from '#core/ports/log-index.ts';
import type { Logger } from '#core/ports/logger.ts';

export interface KafkaEventLogDeps extends SessionDeps {
  readonly index: LogIndex;
}

export interface KafkaEventLog extends EventLog {
  /** Ends all tails and connections. */
  close(): Promise<void>;
}

/** How often the same topic is spoken of. */
const ODDITY_INTERVAL_MS = 60_000;

/**
 * Needs no broker to be there: what cannot be done without them waits for them, or throws ServiceUnavailable. Connections
 * are made when they are needed: two for each broker that is tailed, and two for reads behind.
 */
export function kafkaEventLog(deps: KafkaEventLogDeps): KafkaEventLog {
  const { index } = deps;
  const links = holdLink(deps);
  const onOddity = createOddityLog(deps.logger);
  const tailing = createTailing({ ...deps, onOddity });
  return {
    ranges: createRanges({ index, startsOf: createTopicStarts(links) }),
    read: createReading({ links, index, onOddity }),
    tail: tailing.tail,
    async close() {
      links.close();
      await tailing.close();
    },
  };
}

function createOddityLog(logger: Logger): (topic: string, what: string) => void {
  const silentUntilMs = new Map<string, number>();
  return (topic, what) => {
    const nowMs = performance.now();
    if ((silentUntilMs.get(topic) ?? 0) > nowMs) return;
    silentUntilMs.set(topic, nowMs + ODDITY_INTERVAL_MS);
    logger.warn({ topic }, `topic ${topic}: ${what}`);
  };
}
