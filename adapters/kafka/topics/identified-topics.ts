/**
 * Metadata of topics with the identities that brokers have given them since Kafka 2.8 (KIP-516). They tell a topic from
 * one that was deleted and made anew under its name, which nothing else does for sure. kafkajs speaks version 6, which has
 * none; this is version 10.
 *
 * @see https://kafka.apache.org/protocol.html#The_Messages_Metadata
 */

import apiKeys from 'kafkajs/src/protocol/requests/apiKeys.js';
import type { Broker } from '#adapters/kafka/client/cluster.ts';
import type { TopicMetadata } from '#adapters/kafka/client/requests.ts';
import { WireReader } from '#adapters/kafka/wire/wire-reader.ts';

export interface IdentifiedTopic extends TopicMetadata {
  /** 32 hexadecimal digits; undefined for a topic that does not exist. */
  readonly identity: string | undefined;
}

const VERSION = 10;
const NO_TAGS = Buffer.of(0);
const ID_BYTES = 16;
const NO_ID = Buffer.alloc(ID_BYTES);

/** Undefined when the broker is older. @throws what kafkajs throws when there is no answer. */
export async function askForIdentifiedTopics(
  broker: Broker,
  topics: readonly string[],
): Promise<readonly IdentifiedTopic[] | undefined> {
  const apiKey = apiKeys['Metadata'];
  const newest = apiKey === undefined ? undefined : broker.versions?.[apiKey]?.maxVersion;
  if (apiKey === undefined || newest === undefined || newest < VERSION) return undefined;
  const bytes = encodeMetadataRequest(topics);
  const answer = await broker.connectionPool.send({
    request: {
      apiKey,
      apiVersion: VERSION,
      apiName: 'Metadata',
      encode: async () => ({ buf: bytes, buffer: bytes }),
    },
    response: {
      decode: async (received) => decodeMetadataAnswer(received),
      parse: (decoded) => Promise.resolve(decoded),
    },
  });
  return answer as readonly IdentifiedTopic[];
}

/** With the end of the request's header, which since this version has one (KIP-482). */
export function encodeMetadataRequest(topics: readonly string[]): Buffer {
  return Buffer.concat([
    NO_TAGS,
    unsignedVarint(topics.length + 1),
    ...topics.flatMap((topic) => [NO_ID, compactString(topic), NO_TAGS]),
    // No topic is made by being asked for, and nobody's rights are wanted: of the cluster, of the topics.
    Buffer.of(0, 0, 0),
    NO_TAGS,
  ]);
}

export function decodeMetadataAnswer(bytes: Buffer): readonly IdentifiedTopic[] {
  const reader = new WireReader(bytes);
  reader.skipTags();
  // For how long the broker would slow us down.
  reader.skip(4);
  reader.compactArray(() => {
    reader.skip(4);
    reader.compactText();
    reader.skip(4);
    // Its rack.
    reader.compactText();
    reader.skipTags();
  });
  // The cluster, and its controller.
  reader.compactText();
  reader.skip(4);
  return reader.compactArray(() => decodeTopic(reader));
}

function decodeTopic(reader: WireReader): IdentifiedTopic {
  const topicErrorCode = reader.int16();
  const topic = reader.compactText() ?? '';
  const id = reader.bytes(ID_BYTES);
  // Whether it is one of the brokers' own.
  reader.skip(1);
  const partitionMetadata = reader.compactArray(() => {
    const partitionErrorCode = reader.int16();
    const partitionId = reader.int32();
    const leader = reader.int32();
    reader.skip(4);
    // Replicas, those in sync, those that are away.
    for (let lists = 0; lists < 3; lists += 1) reader.compactArray(() => reader.skip(4));
    reader.skipTags();
    return { partitionErrorCode, partitionId, leader };
  });
  reader.skip(4);
  reader.skipTags();
  return { topicErrorCode, topic, partitionMetadata, identity: id.equals(NO_ID) ? undefined : id.toString('hex') };
}

function compactString(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([unsignedVarint(bytes.length + 1), bytes]);
}

function unsignedVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
