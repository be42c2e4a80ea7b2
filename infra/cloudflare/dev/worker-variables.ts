/** A configuration that was read, as the variables that a worker reads it from. */

import type { Config } from '#infra/_shared/settings/config.ts';
import type { KafkaConfig } from '#infra/_shared/settings/kafka-variables.ts';

/** @param databaseUrl the embedded server's is `local` among the servers of managed databases. */
export function workerVariables(databaseUrl: string, config: Config): Readonly<Record<string, string>> {
  const maintenance = new URL(databaseUrl);
  maintenance.pathname = '/postgres';
  const local = config.databaseUrl === undefined ? { local: maintenance.href } : {};
  const servers = Object.entries({ ...local, ...config.databaseServers });
  return {
    LOG_LEVEL: config.logLevel,
    EVENT_RETENTION_HOURS: String(config.eventRetentionHours),
    WATCH_GROUP_IDLE_DAYS: String(config.watchGroupIdleDays),
    TENANT_GRACE_SECONDS: String(config.tenantGraceSeconds),
    RECONCILE_CONCURRENCY: String(config.reconcileConcurrency),
    TENANT_REQUESTS_PER_SECOND: String(config.limits.tenantRequestsPerSecond),
    TENANT_WATCHERS: String(config.limits.tenantWatchers),
    MAX_WATCHERS: String(config.limits.maxWatchers),
    ...(config.orphanGraceHours !== undefined && { ORPHAN_GRACE_HOURS: String(config.orphanGraceHours) }),
    ...(config.allowedOrigins.length > 0 && { CORS_ORIGINS: config.allowedOrigins.join(',') }),
    ...(config.cursorKeys && 'text' in config.cursorKeys && { CURSOR_KEYS: config.cursorKeys.text }),
    ...(config.kafka && kafkaText(config.kafka)),
    ...(servers.length > 0 && { DATABASE_SERVERS: servers.map(([name, url]) => `${name}=${url}`).join(' ') }),
  };
}

function kafkaText({ brokers, ssl, sasl, topicPrefix, compression }: KafkaConfig): Readonly<Record<string, string>> {
  return {
    EVENT_LOG: 'kafka',
    KAFKA_BROKERS: brokers.join(','),
    KAFKA_SSL: String(ssl),
    KAFKA_TOPIC_PREFIX: topicPrefix,
    KAFKA_COMPRESSION: compression,
    ...(sasl && {
      KAFKA_SASL_MECHANISM: sasl.mechanism,
      KAFKA_USERNAME: sasl.username,
      KAFKA_PASSWORD: sasl.password,
    }),
  };
}
