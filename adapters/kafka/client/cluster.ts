/**
 * The brokers as kafkajs keeps them below its clients: found through the one public hook that leads there. No group is
 * joined, and nothing is subscribed.
 */

import { type Cluster as KafkajsCluster, type Kafka, PartitionAssigners } from 'kafkajs';
import type { Exchange } from 'kafkajs/src/protocol/requests/index.js';

export interface Connection {
  /** The broker answers one after the other. */
  send(exchange: Exchange): Promise<unknown>;
}

export interface Broker {
  readonly nodeId: number | null;
  /** By API key; null until it is connected. */
  readonly versions: Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number }>> | null;
  readonly connectionPool: Connection & {
    /** The first is for all requests but Fetch, which has the second. */
    getConnection(index: 0 | 1): Promise<Connection>;
  };
  isConnected(): boolean;
}

export interface Cluster extends Omit<KafkajsCluster, 'findBroker' | 'findControllerBroker' | 'getNodeIds'> {
  /** The topics whose metadata each refresh asks for; one that is missing makes all of them fail. */
  readonly targetTopics: Set<string>;
  /** Texts, whatever its own types say. */
  getNodeIds(): readonly string[];
  /** Connected. @throws when it cannot be. */
  findBroker(node: { readonly nodeId: string }): Promise<Broker>;
  findControllerBroker(): Promise<Broker>;
}

/** A cluster that is not connected yet, with connections of its own. */
export function clusterOf(kafka: Kafka): Cluster {
  let found: unknown;
  kafka.consumer({
    groupId: 'unused',
    allowAutoTopicCreation: false,
    partitionAssigners: [
      (config) => {
        found = config.cluster;
        return PartitionAssigners.roundRobin(config);
      },
    ],
  });
  return found as Cluster;
}
