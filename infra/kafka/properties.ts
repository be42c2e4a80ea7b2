/** The configuration of one node: broker and controller in one process, reachable from this machine alone. */

import type { AccessSettings } from '#infra/kafka/access.ts';

/** Where a node listens, on 127.0.0.1. */
export interface NodeAddress {
  /** From 1. */
  readonly id: number;
  /** For clients. */
  readonly port: number;
  /** For the other nodes; it knows no credentials and no limits. */
  readonly internalPort: number;
  /** For the quorum of controllers. */
  readonly controllerPort: number;
  /** `host:port` that clients are told to use, such as a proxy's. @default 127.0.0.1 and `port` */
  readonly advertised?: string;
}

export interface NodePropertiesParams {
  readonly node: NodeAddress;
  /** All of the cluster. */
  readonly nodes: readonly NodeAddress[];
  /** @default everybody may do everything, without encryption */
  readonly access?: AccessSettings;
  /** Over all others. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Where records and metadata lie, in the node's folder, which is the broker's working directory. */
export const DATA_FOLDER = 'data';

/** The text of a `server.properties`. */
export function nodeProperties({ node, nodes, access, settings }: NodePropertiesParams): string {
  const all = { ...COMMON, ...sized(nodes.length), ...network(node, nodes, access), ...access?.settings, ...settings };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${escape(value)}\n`)
    .join('');
}

const COMMON: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'log.dirs': DATA_FOLDER,
  // A topic that was deleted must stay deleted, whatever client still asks for it.
  'auto.create.topics.enable': 'false',
  'num.partitions': '1',
  // 128 MiB by default, half of a small heap: with 1,000 topics, collections of 0.4 s. With 2 MiB, 54 MiB are live.
  'log.cleaner.dedupe.buffer.size': '2097152',
  'offsets.topic.num.partitions': '1',
  'transaction.state.log.num.partitions': '1',
  'group.initial.rebalance.delay.ms': '0',
};

function sized(count: number): Record<string, string> {
  const replicas = String(Math.min(count, 3));
  return {
    'default.replication.factor': replicas,
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.replication.factor': replicas,
    'min.insync.replicas': count > 2 ? '2' : '1',
    'transaction.state.log.min.isr': count > 2 ? '2' : '1',
    // A killed broker may register again when its former session is over: 12 s after a kill by default, 3 s with these.
    'broker.session.timeout.ms': count > 1 ? '3000' : '2000',
    'broker.heartbeat.interval.ms': count > 1 ? '500' : '250',
  };
}

function network(
  node: NodeAddress,
  nodes: readonly NodeAddress[],
  access: AccessSettings | undefined,
): Record<string, string> {
  const client = `CLIENT://127.0.0.1:${node.port}`;
  const internal = `INTERNAL://127.0.0.1:${node.internalPort}`;
  return {
    'node.id': String(node.id),
    'controller.quorum.voters': nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`).join(),
    listeners: `${client},${internal},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `${node.advertised ? `CLIENT://${node.advertised}` : client},${internal}`,
    'controller.listener.names': 'CONTROLLER',
    // The nodes speak past the client's listener, so that a proxy or refused credentials there concern clients alone.
    'inter.broker.listener.name': 'INTERNAL',
    'listener.security.protocol.map': `CLIENT:${access?.protocol ?? 'PLAINTEXT'},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT`,
    'listener.name.internal.num.network.threads': '1',
  };
}

/** Of java.util.Properties, which reads Latin-1: a backslash begins an escape, and leading blanks are lost. */
function escape(value: string): string {
  return value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('\n', String.raw`\n`)
    .replace(/^ /, String.raw`\ `)
    .replaceAll(/[^\u0020-\u007e]/g, (unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'));
}
