/**
 * The event log of an instance: PostgreSQL's own, or Kafka's, and the ways into it. What Kafka takes is loaded only for
 * it: some 100 ms and 36 MiB.
 */

import type { OpenSocket } from '#adapters/kafka/client/sockets.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import type { WantedLog } from '#adapters/postgres/log-choice.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { Outbox } from '#core/ports/outbox.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import type { TopicsKept } from '#functions/publish/keep-topics.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import type { PublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

export interface InstanceLog {
  /** For watchers. */
  readonly log: EventLog;
  /** For publishers. */
  readonly outbox: Outbox;
  /** For those who take streams away; absent in PostgreSQL. */
  readonly topicAdmin?: TopicAdmin;
  /**
   * Prepares what is to be published into, once: what a scheduled publisher does first.
   * @param withInspection also looks whether what there is already is still what it was. @default true
   */
  prepare(withInspection?: boolean): Promise<TopicsKept>;
  /** Does so until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface InstanceLogOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Those of `publish` and `ops` see all tenants. */
  readonly pools: { readonly watch: Sql; readonly publish: Sql; readonly ops: Sql };
  readonly reports: Pick<PublisherReports, 'onTopicLost' | 'onTopicError'>;
  /** How connections to Kafka's brokers are made. @default as Node does */
  readonly openSocket?: OpenSocket;
  /** Awaited before anything is changed at the brokers. @default nothing: they were checked at the start */
  readonly beforeChanges?: () => Promise<void>;
}

/** Which log the configuration wants, once it is sure that it can be had. @throws {StartError} with the reason. */
export async function findWantedLog({ kafka }: Config, logger: Logger, openSocket?: OpenSocket): Promise<WantedLog> {
  if (!kafka) return { log: 'postgres' };
  try {
    const { findCluster } = await import('#infra/_shared/event-log/kafka-log.ts');
    return { log: 'kafka', topicPrefix: kafka.topicPrefix, clusterId: await findCluster(kafka, logger, openSocket) };
  } catch (error) {
    throw new StartError(`the event log in Kafka cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

/** Of an installation that has this log: see `Installation.haveLog`. */
export async function openEventLog(options: InstanceLogOptions): Promise<InstanceLog> {
  const { kafka } = options.config;
  if (!kafka) return inPostgres(options);
  const { openKafkaLog } = await import('#infra/_shared/event-log/kafka-log.ts');
  return openKafkaLog(kafka, options);
}

function inPostgres({ pools }: InstanceLogOptions): InstanceLog {
  return {
    log: postgresEventLog(pools.watch),
    outbox: postgresOutbox(pools.publish),
    prepare: async () => ({ isProvisioned: true, isSound: true, hasNew: false }),
    run: async () => undefined,
    close: async () => undefined,
  };
}
