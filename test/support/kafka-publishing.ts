/** Publishing into Kafka, put together as an instance does it, with all that a test wants to see or to put in between. */

import { randomUUID } from 'node:crypto';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { switchLog } from '#adapters/postgres/log-choice.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { postgresManifests } from '#adapters/postgres/manifests.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresTopics } from '#adapters/postgres/topics.ts';
import type { EventWriter } from '#core/ports/event-writer.ts';
import type { Manifests } from '#core/ports/manifests.ts';
import type { Outbox } from '#core/ports/outbox.ts';
import { keepTopics, type KeepTopicsDeps } from '#functions/publish/keep-topics.ts';
import { manifestOutbox } from '#functions/publish/manifest-outbox.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

/** What a batch passes through. */
export interface PublishingPorts {
  readonly manifests: Manifests;
  readonly writer: EventWriter;
}

export interface KafkaPublishingOptions {
  readonly sql: Sql;
  readonly brokers: readonly string[];
  /** Puts something around them. */
  readonly around?: (ports: PublishingPorts) => PublishingPorts;
  readonly onTopicLost?: (topic: string, reason: string) => void;
  readonly onTopicError?: (error: unknown, topic?: string) => void;
}

export interface KafkaPublishing {
  readonly outbox: Outbox;
  /** For the keeper of the topics. */
  readonly keeping: KeepTopicsDeps;
  close(): Promise<void>;
}

/** As an instance has it when nothing is said: keepers who want different ones would take turns. */
const RETENTION_MS = 168 * 3_600_000;

export function kafkaPublishing(options: KafkaPublishingOptions): KafkaPublishing {
  const { sql, brokers, around = (ports) => ports, onTopicLost = ignore, onTopicError = ignore } = options;
  const settings = settingsFor(brokers);
  const writer = kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
  const topics = postgresTopics(sql);
  return {
    outbox: manifestOutbox({
      outbox: postgresOutbox(sql),
      ...around({ manifests: postgresManifests(sql, randomUUID()), writer }),
      topics,
      onTopicLost,
    }),
    keeping: {
      topics,
      admin: kafkaTopicAdmin({ settings, logger: silentLogger }),
      index: postgresLogIndex(sql),
      defaults: { retentionMs: RETENTION_MS, retentionBytes: undefined },
      onLost: onTopicLost,
      onError: onTopicError,
    },
    close: () => writer.close(),
  };
}

/** A database whose events go to these brokers, into topics that no other test has, with the topics of these tenants. */
export async function prepareKafkaDatabase(
  tenants: readonly string[],
  brokers: readonly string[],
): Promise<PreparedDatabase> {
  const database = await prepareDatabase([]);
  const topicPrefix = `${new URL(database.url).pathname.slice(1)}.`;
  await switchLog(database.url, { log: 'kafka', topicPrefix, clusterId: 'of the test' });
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'system', 'plumbline.dev', 'Tenant', name from unnest(${[...tenants]}::text[]) name`;
  const { keeping, close } = kafkaPublishing({ sql: database.sql, brokers, onTopicError: fail });
  await keepTopics(keeping, false);
  await close();
  return database;
}

function ignore(): void {
  // Tests look at what became of it.
}

function fail(error: unknown): never {
  throw error;
}
