/** The event log of an instance in Kafka. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { KafkaSettings } from '#adapters/kafka/client/client.ts';
import type { OpenSocket } from '#adapters/kafka/client/sockets.ts';
import { checkCluster } from '#adapters/kafka/cluster-check.ts';
import { kafkaEventLog } from '#adapters/kafka/event-log.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { postgresManifests } from '#adapters/postgres/manifests.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresTopics } from '#adapters/postgres/topics.ts';
import type { EventWriter } from '#core/ports/event-writer.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { keepTopics, type KeepTopicsDeps, runTopicKeeper } from '#functions/publish/keep-topics.ts';
import { manifestOutbox } from '#functions/publish/manifest-outbox.ts';
import type { InstanceLog, InstanceLogOptions } from '#infra/_shared/event-log/event-log.ts';
import type { KafkaConfig } from '#infra/_shared/settings/kafka-variables.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

/** The id of the cluster, once it is sure that it can be used. @throws {Error} with the reason, in one sentence. */
export async function findCluster(kafka: KafkaConfig, logger: Logger, openSocket?: OpenSocket): Promise<string> {
  const { clusterId } = await checkCluster(settingsOf(kafka, openSocket), { topicPrefix: kafka.topicPrefix, logger });
  return clusterId;
}

/** Needs no broker to be there. */
export function openKafkaLog(
  kafka: KafkaConfig,
  { config, logger, pools, reports, openSocket, beforeChanges }: InstanceLogOptions,
): InstanceLog {
  const settings = settingsOf(kafka, openSocket);
  // What retention took is gone for all tenants: it is noted by who sees them all.
  const { advanceStart } = postgresLogIndex(pools.ops);
  const log = kafkaEventLog({ settings, logger, index: { ...postgresLogIndex(pools.watch), advanceStart } });
  const writer = kafkaEventWriter({ settings, logger, compression: kafka.compression });
  const topics = postgresTopics(pools.publish);
  const keeping: KeepTopicsDeps = {
    topics,
    admin: guardedAdmin(kafkaTopicAdmin({ settings, logger }), beforeChanges),
    index: postgresLogIndex(pools.publish),
    defaults: { retentionMs: config.eventRetentionHours * 3_600_000, retentionBytes: undefined },
    onLost: reports.onTopicLost,
    onError: reports.onTopicError,
  };
  return {
    log,
    topicAdmin: keeping.admin,
    outbox: manifestOutbox({
      outbox: postgresOutbox(pools.publish),
      manifests: postgresManifests(pools.publish, randomUUID()),
      writer: guardedWriter(writer, beforeChanges),
      topics,
      onTopicLost: reports.onTopicLost,
    }),
    prepare: (withInspection) => keepTopics(keeping, withInspection),
    run: (signal) => runTopicKeeper(keeping, signal),
    async close() {
      await Promise.all([log.close(), writer.close()]);
    },
  };
}

type Guard = InstanceLogOptions['beforeChanges'];

/** Also what it tells may lead to changes. */
function guardedAdmin(admin: TopicAdmin, guard: Guard): TopicAdmin {
  if (!guard) return admin;
  return {
    ensure: (...args) => guard().then(() => admin.ensure(...args)),
    remove: (...args) => guard().then(() => admin.remove(...args)),
    extents: (...args) => guard().then(() => admin.extents(...args)),
  };
}

function guardedWriter(writer: EventWriter, guard: Guard): EventWriter {
  if (!guard) return writer;
  return { append: (...args) => guard().then(() => writer.append(...args)) };
}

function settingsOf(
  { brokers, ssl, clientCertificate, sasl }: KafkaConfig,
  openSocket: OpenSocket | undefined,
): KafkaSettings {
  const own = clientCertificate && {
    cert: read('KAFKA_CLIENT_CERT_FILE', clientCertificate.certFile),
    key: read('KAFKA_CLIENT_KEY_FILE', clientCertificate.keyFile),
  };
  return { brokers, ssl: own ?? ssl, sasl, clientId: 'plumbline', openSocket };
}

function read(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError(`${variable} is "${file}", which cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
