/**
 * A visit to the cluster: a client of its own for a few requests, over one connection to each broker that is asked. It
 * carries nothing over that could be wrong by now, no topic that was deleted and no broker that hangs.
 */

import { type KafkaSettings, kafkaClient } from '#adapters/kafka/client/client.ts';
import { type Broker, type Cluster, clusterOf } from '#adapters/kafka/client/cluster.ts';
import { within } from '#adapters/kafka/client/deadline.ts';
import { createSockets } from '#adapters/kafka/client/sockets.ts';
import type { Logger } from '#core/ports/logger.ts';

export interface SessionDeps {
  readonly settings: KafkaSettings;
  readonly logger: Logger;
}

export interface Session {
  /** The one to ask for changes: the controller. Another broker when it cannot be reached; of those, any will mostly do. */
  controller(): Promise<Broker>;
  /** One of the brokers, by its number. */
  broker(nodeId: number): Promise<Broker>;
}

const REQUEST_TIMEOUT_MS = 8_000;

/** @throws what kafkajs throws, or `Late`. */
export async function inSession<T>(
  { settings, logger }: SessionDeps,
  timeoutMs: number,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const sockets = createSockets(settings.openSocket);
  const cluster = clusterOf(kafkaClient(settings, logger, { sockets, requestTimeoutMs: REQUEST_TIMEOUT_MS }));
  try {
    return await within(visit(cluster, work), timeoutMs, 'the answer of the Kafka brokers');
  } finally {
    // What is still under way is of no use to anybody.
    sockets.destroy();
    cluster.disconnect().catch(() => undefined);
  }
}

async function visit<T>(cluster: Cluster, work: (session: Session) => Promise<T>): Promise<T> {
  await cluster.connect();
  await cluster.refreshMetadata();
  return work({
    controller: () => cluster.findControllerBroker().catch(() => anyBroker(cluster)),
    broker: (nodeId) => cluster.findBroker({ nodeId: String(nodeId) }),
  });
}

async function anyBroker(cluster: Cluster): Promise<Broker> {
  try {
    return await Promise.any(cluster.getNodeIds().map((nodeId) => cluster.findBroker({ nodeId })));
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  }
}
