/**
 * A real Apache Kafka of our own, without containers: one node or a small cluster (KRaft, each node broker and
 * controller), reachable from this machine alone, for `npm run kafka` and for tests, which kill and freeze its nodes. It
 * ends with the process that started it.
 *
 * To put a network that fails between a client and a broker, give a client that can say where it connects (kafkajs:
 * `socketFactory`) the port of a proxy instead; for any other client, let `advertised` name the proxy.
 */

import { realpath } from 'node:fs/promises';
import { type KafkaAccess, accessSettings } from '#infra/kafka/access.ts';
import type { BrokerExit } from '#infra/kafka/broker-process.ts';
import { type ClusterDirectory, openClusterDirectory } from '#infra/kafka/cluster-directory.ts';
import { type InstallOptions, type KafkaInstallation, installKafka } from '#infra/kafka/install.ts';
import { type KafkaNode, type StartableNode, kafkaNode } from '#infra/kafka/kafka-node.ts';
import { prepareNode } from '#infra/kafka/node-directory.ts';
import { chooseAddresses } from '#infra/kafka/addresses.ts';
import { type NodeAddress, nodeProperties } from '#infra/kafka/properties.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';

export type { KafkaNode } from '#infra/kafka/kafka-node.ts';

export interface KafkaOptions extends InstallOptions {
  /** Made when absent; kept for the next start. */
  readonly dataDir: string;
  /** Every topic has three replicas where there are three, and min.insync.replicas is 2 then. @default 1 */
  readonly nodes?: number;
  /** Of the first node, for clients; the next ones have the next ports. @default free ones, the same until `stop` */
  readonly port?: number;
  /** `host:port` per node that clients are told to use. @default where the nodes listen */
  readonly advertised?: readonly string[];
  /** Broker settings, over those of `properties.ts`. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly access?: KafkaAccess;
  /** Of each node; it takes some 150 MiB more than its heap. @default 256 */
  readonly heapMebibytes?: number;
  /** Called when a node ended without having been told to, with the last that it said. It is not started again. */
  readonly onUnexpectedExit?: (node: KafkaNode, exit: BrokerExit, said: string) => void;
}

export interface Kafka {
  /** Of Apache Kafka. */
  readonly version: string;
  /** `host:port` for clients, as they are told it. */
  readonly brokers: readonly string[];
  /** A way in for everybody, without login, encryption and limits, whatever `access` says: for setting up rights. */
  readonly internalBrokers: readonly string[];
  /** PEM, of a listener with TLS: what a client is to trust. */
  readonly certificate: string | undefined;
  readonly nodes: readonly KafkaNode[];
  /** The node with this id. */
  node(id: number): KafkaNode;
  /** Stops all nodes. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

/**
 * The last nodes of a cluster cannot say good-bye, as there is no majority of controllers to hear it; they would wait for
 * minutes. What they wrote is the kernel's, and a kill takes nothing from it.
 */
const CLUSTER_STOP_PATIENCE_MS = 3_000;
const ATTEMPTS = 3;
// Somebody took the port between our look and the start.
const PORT_TAKEN = 'Address already in use';

/**
 * Fetches Kafka when this machine has none yet, and answers when all nodes serve.
 * @throws {StartError} when Java or Maven is missing, the fetch fails, another process has the folder or the port, or a
 * node does not start; with what to do.
 */
export async function startKafka(options: KafkaOptions): Promise<Kafka> {
  const { nodes: count = 1, port } = options;
  if (options.advertised && options.advertised.length !== count) throw new Error('advertised: one address per node');
  const programs = await installKafka(options);
  const directory = await openClusterDirectory(options.dataDir, count);
  try {
    for (let attempt = 1; ; attempt++) {
      const addresses = await chooseAddresses({ count, port, advertised: options.advertised });
      try {
        return await startNodes(options, programs, directory, addresses);
      } catch (error) {
        if (attempt === ATTEMPTS || !messageOf(error).includes(PORT_TAKEN)) throw error;
      }
    }
  } catch (error) {
    directory.release();
    throw error;
  }
}

async function startNodes(
  options: KafkaOptions,
  programs: KafkaInstallation,
  directory: ClusterDirectory,
  addresses: readonly NodeAddress[],
): Promise<Kafka> {
  const { settings, heapMebibytes = 256 } = options;
  const access =
    options.access && (await accessSettings(options.access, await realpath(options.dataDir), programs.java));
  await Promise.all(
    addresses.map((node) =>
      prepareNode({
        programs,
        directory: directory.nodeDirectory(node.id),
        clusterId: directory.clusterId,
        properties: nodeProperties({
          node,
          nodes: addresses,
          ...(access && { access }),
          ...(settings && { settings }),
        }),
        ...(access && { formatArguments: access.formatArguments }),
      }),
    ),
  );
  const nodes = addresses.map((address) => {
    const node: StartableNode = kafkaNode({
      programs,
      address,
      directory: directory.nodeDirectory(address.id),
      javaOptions: [`-Xmx${heapMebibytes}m`],
      onUnexpectedExit: (exit, said) => options.onUnexpectedExit?.(node, exit, said),
    });
    return node;
  });
  try {
    await Promise.all(nodes.map((node) => node.startAmong(nodes.length)));
  } catch (error) {
    await Promise.all(nodes.map((node) => node.kill9()));
    throw error;
  }
  const patienceMs = nodes.length > 1 ? CLUSTER_STOP_PATIENCE_MS : undefined;
  let stopped: Promise<void> | undefined;
  return {
    version: programs.version,
    brokers: addresses.map(({ advertised, port }) => advertised ?? `127.0.0.1:${port}`),
    internalBrokers: addresses.map(({ internalPort }) => `127.0.0.1:${internalPort}`),
    certificate: access?.certificate,
    nodes,
    node(id) {
      const node = nodes[id - 1];
      if (!node) throw new Error(`there is no node ${id}`);
      return node;
    },
    stop() {
      stopped ??= Promise.all(nodes.map((node) => node.stop(patienceMs))).then(() => directory.release());
      return stopped;
    },
  };
}
