/** Events to be written to Kafka, and what lies there, read without any code of the adapter that wrote it. */

import { type IHeaders, Kafka, type KafkaConfig, logLevel, PartitionAssigners } from 'kafkajs';
import type { KafkaSettings } from '#adapters/kafka/client/client.ts';
import type { NumberedEvent } from '#core/event.ts';

export function settingsFor(brokers: readonly string[]): KafkaSettings {
  return { brokers, ssl: false, clientId: 'plumbline-test' };
}

export interface EventOptions {
  /** Characters in the spec of the object. @default 10 */
  readonly size?: number;
  /** @default 1 */
  readonly firstSeq?: number;
  /** To be told from others of the same numbers. @default '' */
  readonly mark?: string;
}

/** Numbered densely. */
export function numberedEvents(stream: number, count: number, options: EventOptions = {}): NumberedEvent[] {
  const { size = 10, firstSeq = 1, mark = '' } = options;
  return Array.from({ length: count }, (_, index) => numberedEvent(stream, firstSeq + index, size, mark));
}

function numberedEvent(stream: number, seq: number, size: number, mark: string): NumberedEvent {
  const uid = `0199c5a0-0000-7000-8000-${String(seq % 50).padStart(12, '0')}`;
  const object = JSON.stringify({
    kind: 'Widget',
    metadata: { name: `w${seq % 50}` },
    spec: { text: 'x'.repeat(size) },
  });
  return {
    stream: BigInt(stream),
    seq: BigInt(seq),
    id: `${mark}${stream}-${seq}`,
    type: 'MODIFIED',
    time: new Date(1_796_000_000_000 + seq),
    txid: String(seq),
    traceparent: null,
    subject: {
      tenant: 'acme',
      group: 'example.dev',
      kind: 'Widget',
      name: `w${seq % 50}`,
      uid,
      resourceVersion: String(1_000 + seq),
    },
    object,
    size: object.length,
    labels: '{}',
    oldLabels: null,
  };
}

export interface WrittenRecord {
  readonly offset: bigint;
  /** Of the event. */
  readonly id: string;
  readonly seq: number;
  readonly stream: string;
  readonly key: string | undefined;
  readonly value: string | undefined;
  readonly headers: IHeaders;
  /** Who wrote it. */
  readonly producerId: string;
}

/** All records of a topic, from its first to its last offset, by a stock client. */
export async function readTopic(
  brokers: readonly string[],
  topic: string,
  { sasl }: Pick<KafkaSettings, 'sasl'> = {},
): Promise<WrittenRecord[]> {
  const kafka = new Kafka({
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    retry: { retries: 8 },
    ...(sasl && { sasl: sasl as NonNullable<KafkaConfig['sasl']> }),
  });
  const cluster = openCluster(kafka);
  await cluster.connect();
  try {
    await cluster.addTargetTopic(topic);
    const [{ partitions: [latest] } = { partitions: [] }] = await cluster.fetchTopicsOffset([
      { topic, partitions: [{ partition: 0 }], fromBeginning: false },
    ]);
    const end = BigInt(latest!.offset);
    const [leader] = Object.keys(cluster.findLeaderForPartitions(topic, [0]));
    const broker = await cluster.findBroker({ nodeId: leader! });
    const records: WrittenRecord[] = [];
    for (let next = 0n; next < end; next = records.at(-1)!.offset + 1n) {
      const { responses } = await broker.fetch({
        maxWaitTime: 100,
        topics: [{ topic, partitions: [{ partition: 0, fetchOffset: String(next), maxBytes: 8 * 1024 * 1024 }] }],
      });
      for (const message of responses[0].partitions[0].messages) {
        if (BigInt(message.offset) >= next) records.push(writtenRecord(message));
      }
    }
    return records;
  } finally {
    await cluster.disconnect();
  }
}

/** What readers take of a log: the first record of each number. */
export function deduplicated(records: readonly WrittenRecord[]): WrittenRecord[] {
  let last = 0;
  return records.filter(({ seq }) => {
    if (seq <= last) return false;
    last = seq;
    return true;
  });
}

type Cluster = Parameters<(typeof PartitionAssigners)['roundRobin']>[0]['cluster'];

/** Through the hook that leads to the brokers without a group. */
function openCluster(kafka: Kafka): Cluster {
  let cluster: Cluster | undefined;
  kafka.consumer({
    groupId: 'unused',
    allowAutoTopicCreation: false,
    partitionAssigners: [
      (config) => {
        ({ cluster } = config);
        return PartitionAssigners.roundRobin(config);
      },
    ],
  });
  return cluster!;
}

interface Message {
  readonly offset: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: IHeaders;
  readonly batchContext: { readonly producerId: unknown };
}

function writtenRecord({ offset, key, value, headers, batchContext }: Message): WrittenRecord {
  return {
    offset: BigInt(offset),
    id: String(headers['ce_id']),
    seq: Number(headers['ce_seq']),
    stream: String(headers['ce_stream']),
    key: key?.toString(),
    value: value?.toString(),
    headers,
    producerId: String(batchContext.producerId),
  };
}
