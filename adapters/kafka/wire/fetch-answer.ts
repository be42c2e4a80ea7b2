/**
 * Answers to Fetch, version 11. kafkajs throws a whole answer away when one topic of it has an error; here each has its own.
 *
 * @see https://kafka.apache.org/protocol.html#The_Messages_Fetch
 */

import { WireReader } from '#adapters/kafka/wire/wire-reader.ts';

export interface FetchAnswer {
  /** Of the answer as a whole: then there are no topics in it. */
  readonly errorCode: number;
  /** 0: the broker keeps no session. */
  readonly sessionId: number;
  /** For kafkajs, which waits so long before its next request. */
  readonly clientSideThrottleTime: number;
  /** In a session only the topics with news. */
  readonly topics: readonly FetchedTopic[];
}

export interface FetchedTopic {
  readonly topic: string;
  readonly errorCode: number;
  /** Behind the last record that may be read. */
  readonly highWatermark: bigint;
  /** Record batches, the last of which may be cut off. A part of the answer's bytes. */
  readonly batches: Buffer;
}

const NO_BYTES = Buffer.alloc(0);
const ABORTED_TRANSACTION_BYTES = 16;

export function decodeFetchAnswer(bytes: Buffer): FetchAnswer {
  const reader = new WireReader(bytes);
  const clientSideThrottleTime = reader.int32();
  const errorCode = reader.int16();
  const sessionId = reader.int32();
  const topics: FetchedTopic[] = [];
  for (let left = reader.int32(); left > 0; left -= 1) {
    const topic = reader.text(reader.int16());
    for (let partitions = reader.int32(); partitions > 0; partitions -= 1) topics.push(decodePartition(topic, reader));
  }
  return { errorCode, sessionId, clientSideThrottleTime, topics };
}

function decodePartition(topic: string, reader: WireReader): FetchedTopic {
  // Its number: the topics have one.
  reader.skip(4);
  const errorCode = reader.int16();
  const highWatermark = reader.int64();
  // The last stable offset and the log's start.
  reader.skip(16);
  reader.skip(Math.max(reader.int32(), 0) * ABORTED_TRANSACTION_BYTES);
  // The replica that the broker would prefer.
  reader.skip(4);
  const size = reader.int32();
  return { topic, errorCode, highWatermark, batches: size > 0 ? reader.bytes(size) : NO_BYTES };
}
