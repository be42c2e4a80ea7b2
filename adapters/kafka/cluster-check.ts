/** Before anything is built upon a cluster: can it be reached, is it new enough, and may we do what we will have to do? */

import { kafkaClient, type KafkaSettings } from '#adapters/kafka/client/client.ts';
import { type Broker, clusterOf } from '#adapters/kafka/client/cluster.ts';
import { type ConnectProblem, connectProblem, namedProblem } from '#adapters/kafka/client/connect-problem.ts';
import { within } from '#adapters/kafka/client/deadline.ts';
import { ask } from '#adapters/kafka/client/requests.ts';
import { rightsProblem } from '#adapters/kafka/topics/rights.ts';
import { createSockets, type Sockets } from '#adapters/kafka/client/sockets.ts';
import { versionProblem } from '#adapters/kafka/client/versions.ts';
import type { Logger } from '#core/ports/logger.ts';

export interface ClusterCheckOptions {
  /** Of the topics that will be made. */
  readonly topicPrefix: string;
  readonly logger: Logger;
}

export interface CheckedCluster {
  readonly clusterId: string;
  /** `host:port` of all of them, as they tell it. */
  readonly brokers: readonly string[];
}

const TIMEOUT_MS = 15_000;
const CONNECTION_TIMEOUT_MS = 6_000;

/**
 * Changes nothing.
 * @throws {Error} with one sentence that says what is wrong, and with which broker.
 */
export async function checkCluster(settings: KafkaSettings, options: ClusterCheckOptions): Promise<CheckedCluster> {
  const sockets = createSockets(settings.openSocket);
  const check = checkWith(settings, options, sockets);
  try {
    return await within(check, TIMEOUT_MS, `the check of the Kafka brokers at ${settings.brokers.join(', ')}`);
  } finally {
    sockets.destroy();
  }
}

async function checkWith(
  settings: KafkaSettings,
  { topicPrefix, logger }: ClusterCheckOptions,
  sockets: Sockets,
): Promise<CheckedCluster> {
  const broker = await firstBroker(settings, logger, sockets);
  const { clusterId, brokers } = await ask(broker, 'Metadata', { topics: [], allowAutoTopicCreation: false });
  const addresses = brokers.map(({ host, port }) => `${host}:${port}`);
  const tooOld = versionProblem(broker.versions);
  if (tooOld !== undefined) throw new Error(`the Kafka broker ${addresses[0]} ${tooOld}`);
  if (clusterId === null) throw new Error(`the Kafka brokers ${addresses.join(', ')} tell no id of their cluster`);
  const notAllowed = await rightsProblem(broker, topicPrefix);
  if (notAllowed !== undefined) throw new Error(notAllowed);
  return { clusterId, brokers: addresses };
}

/** The first that answers, all configured ones being asked at once. */
async function firstBroker(settings: KafkaSettings, logger: Logger, sockets: Sockets): Promise<Broker> {
  const problems: ConnectProblem[] = [];
  try {
    return await Promise.any(settings.brokers.map(reach));
  } catch (error) {
    const refused = problems.find(({ isRefusal }) => isRefusal);
    const unreached = `no Kafka broker can be reached: ${problems.map(({ words }) => words).join(', ')}`;
    throw new Error(refused?.words ?? unreached, { cause: error });
  }

  async function reach(address: string): Promise<Broker> {
    const limits = { retries: 0, connectionTimeoutMs: CONNECTION_TIMEOUT_MS, requestTimeoutMs: CONNECTION_TIMEOUT_MS };
    const client = kafkaClient({ ...settings, brokers: [address] }, logger, { sockets, ...limits });
    const cluster = clusterOf(client);
    let isGreeted = false;
    try {
      await cluster.connect();
      isGreeted = true;
      await cluster.refreshMetadata();
    } catch (error) {
      problems.push(connectProblem(error, { address, isGreeted, settings }));
      throw error;
    }
    try {
      return await Promise.any(cluster.getNodeIds().map((nodeId) => cluster.findBroker({ nodeId })));
    } catch (error) {
      problems.push(namedProblem(error, address));
      throw error;
    }
  }
}
