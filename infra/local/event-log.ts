/** The event log of an instance: PostgreSQL's own, or Kafka's, and the ways into it. */

import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { checkCluster } from '#adapters/kafka/cluster-check.ts';
import { kafkaEventLog } from '#adapters/kafka/event-log.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { chooseLog, LogMismatch, type WantedLog } from '#adapters/postgres/log-choice.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { postgresManifests } from '#adapters/postgres/manifests.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresTopics } from '#adapters/postgres/topics.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { Outbox } from '#core/ports/outbox.ts';
import { keepTopics, type KeepTopicsDeps, runTopicKeeper } from '#functions/publish/keep-topics.ts';
import { manifestOutbox } from '#functions/publish/manifest-outbox.ts';
import type { Config } from '#infra/local/config.ts';
import type { PublisherReports } from '#infra/local/publisher-reports.ts';
import type { KafkaConfig } from '#infra/local/kafka-variables.ts';
import { messageOf, StartError } from '#infra/local/start-error.ts';

export interface InstanceLog {
  /** For watchers. */
  readonly log: EventLog;
  /** For publishers. */
  readonly outbox: Outbox;
  /** Prepares what is to be published into, once: what a scheduled publisher does first. */
  prepare(): Promise<void>;
  /** Does so until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface InstanceLogOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly logger: Logger;
  readonly pools: { readonly watch: Sql; readonly publish: Sql };
  readonly reports: Pick<PublisherReports, 'onTopicLost' | 'onTopicError'>;
}

/** Which log the configuration wants, once it is sure that it can be had. @throws {StartError} with the reason. */
export async function findWantedLog({ kafka }: Config, logger: Logger): Promise<WantedLog> {
  if (!kafka) return { log: 'postgres' };
  try {
    const { clusterId } = await checkCluster(settingsOf(kafka), { topicPrefix: kafka.topicPrefix, logger });
    return { log: 'kafka', topicPrefix: kafka.topicPrefix, clusterId };
  } catch (error) {
    throw new StartError(`the event log in Kafka cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

/** @throws {StartError} when the brokers cannot be used, or the installation's events lie elsewhere. */
export async function openEventLog(options: InstanceLogOptions): Promise<InstanceLog> {
  const { config, databaseUrl, logger } = options;
  const wanted = await findWantedLog(config, logger);
  try {
    await chooseLog(databaseUrl, wanted);
  } catch (error) {
    throw error instanceof LogMismatch ? new StartError(error.message, { cause: error }) : error;
  }
  return config.kafka ? inKafka(config.kafka, options) : inPostgres(options);
}

function inPostgres({ pools }: InstanceLogOptions): InstanceLog {
  return {
    log: postgresEventLog(pools.watch),
    outbox: postgresOutbox(pools.publish),
    prepare: async () => undefined,
    run: async () => undefined,
    close: async () => undefined,
  };
}

function inKafka(kafka: KafkaConfig, { config, logger, pools, reports }: InstanceLogOptions): InstanceLog {
  const settings = settingsOf(kafka);
  const log = kafkaEventLog({ settings, logger, index: postgresLogIndex(pools.watch) });
  const writer = kafkaEventWriter({ settings, logger, compression: kafka.compression });
  const topics = postgresTopics(pools.publish);
  const keeping: KeepTopicsDeps = {
    topics,
    admin: kafkaTopicAdmin({ settings, logger }),
    index: postgresLogIndex(pools.publish),
    defaults: { retentionMs: config.eventRetentionHours * 3_600_000, retentionBytes: undefined },
    onLost: reports.onTopicLost,
    onError: reports.onTopicError,
  };
  return {
    log,
    outbox: manifestOutbox({
      outbox: postgresOutbox(pools.publish),
      manifests: postgresManifests(pools.publish, randomUUID()),
      writer,
      topics,
      onTopicLost: reports.onTopicLost,
    }),
    async prepare() {
      await keepTopics(keeping);
    },
    run: (signal) => runTopicKeeper(keeping, signal),
    async close() {
      await Promise.all([log.close(), writer.close()]);
    },
  };
}

function settingsOf({ brokers, ssl, sasl }: KafkaConfig): Parameters<typeof checkCluster>[0] {
  return { brokers, ssl, sasl, clientId: 'plumbline' };
}
