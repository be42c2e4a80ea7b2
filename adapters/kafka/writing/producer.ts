/**
 * One producer of kafkajs, until its first failure.
 *
 * kafkajs takes the sequence numbers of a rejected call back, also of the partitions that a broker had appended to. What
 * that producer sends next to one of them may be taken for a repetition: acknowledged, and never written. So after any
 * rejection it is ended for good, and its connections are broken: nothing that it still tries arrives any more.
 */

import { CompressionTypes, type RecordMetadata } from 'kafkajs';
import { type KafkaSettings, kafkaClient } from '#adapters/kafka/client/client.ts';
import { Late, within } from '#adapters/kafka/client/deadline.ts';
import type { EventRecord } from '#adapters/kafka/records.ts';
import { createSockets } from '#adapters/kafka/client/sockets.ts';
import type { Logger } from '#core/ports/logger.ts';

export type Compression = 'none' | 'gzip';

export interface BatchProducerDeps {
  readonly settings: KafkaSettings;
  readonly logger: Logger;
  readonly compression: Compression;
}

/** What one call writes: for each topic its records, into its only partition. */
export type TopicRecords = ReadonlyMap<string, readonly EventRecord[]>;

export interface BatchProducer {
  /** Before anything is sent. @throws what kafkajs throws, or `Late`. */
  connect(timeoutMs: number): Promise<void>;
  /**
   * One call at a time. Resolves when all is on all in-sync replicas, with the offset of each topic's first record. kafkajs
   * repeats the identical call for a second or two while that can help; that may not write anything twice.
   * @throws what kafkajs throws, or `Late`. Then nothing is known of what was written.
   */
  send(records: TopicRecords, timeoutMs: number): Promise<ReadonlyMap<string, bigint>>;
  /** It has failed, or done its part: take another. */
  readonly isSpent: boolean;
  /** Lets what is sent arrive, for some seconds. Never rejects. */
  close(): Promise<void>;
}

/** Requests that hang are repeated once by kafkajs before the call's own time is over. */
const REQUEST_TIMEOUT_MS = 5_000;
/** How long the leader waits for its replicas. Shorter than the request's timeout, so that it can say so. */
const REPLICATION_TIMEOUT_MS = 4_000;
/** A connection takes some 10 ms, and where TLS and a login belong to it a few hundred. */
const CONNECT_TIMEOUT_MS = 3_000;
/** After it a broker may hang, and another one is tried beside it. */
const CONNECT_PATIENCE_MS = 300;
/**
 * A broker whose controller hangs may give no producer its number for up to 30 s, while another has some in stock. Which of
 * them is asked is chance.
 */
const CONNECT_ATTEMPTS = 6;
const ATTEMPTS_WHEN_REFUSED = 2;
const CLOSE_TIMEOUT_MS = 5_000;
// kafkajs wraps its 31-bit sequence numbers to the wrong one, and brokers forget a producer after a day by default.
const MAX_RECORDS = 1_000_000_000;
const MAX_AGE_MS = 20 * 3_600_000;

export function createBatchProducer({ settings, logger, compression }: BatchProducerDeps): BatchProducer {
  const sockets = createSockets(settings.openSocket);
  const client = kafkaClient(settings, logger, { sockets, requestTimeoutMs: REQUEST_TIMEOUT_MS });
  const producer = client.producer({
    idempotent: true,
    allowAutoTopicCreation: false,
    createPartitioner: () => () => 0,
  });
  const spentAtMs = performance.now() + MAX_AGE_MS;
  let records = 0;
  let failed = false;

  return {
    async connect(timeoutMs) {
      await orEnd(producer.connect(), timeoutMs, 'connecting to the Kafka brokers');
    },

    async send(batch, timeoutMs) {
      const topicMessages = [...batch].map(([topic, messages]) => ({ topic, messages: OnePartition.from(messages) }));
      for (const { messages } of topicMessages) records += messages.length;
      const sent = producer.sendBatch({
        acks: -1,
        timeout: REPLICATION_TIMEOUT_MS,
        compression: compression === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None,
        topicMessages,
      });
      return orEnd(
        sent.then((answers) => offsetsOf(answers, batch)),
        timeoutMs,
        'the answer of the Kafka brokers',
      );
    },

    get isSpent() {
      return failed || records >= MAX_RECORDS || performance.now() >= spentAtMs;
    },

    async close() {
      await within(producer.disconnect(), CLOSE_TIMEOUT_MS, 'closing a Kafka producer').catch(() => undefined);
      sockets.destroy();
    },
  };

  async function orEnd<T>(promise: Promise<T>, timeoutMs: number, subject: string): Promise<T> {
    try {
      return await within(promise, timeoutMs, subject);
    } catch (error) {
      failed = true;
      sockets.destroy();
      producer.disconnect().catch(() => undefined);
      throw error;
    }
  }
}

/**
 * kafkajs sorts records into partitions by a reduction that copies the list once for each record: 2 KiB of garbage a
 * record in a call of 500. Ours have one partition.
 */
class OnePartition extends Array<EventRecord> {
  override reduce(): never {
    return { 0: this } as never;
  }
}

/**
 * A producer that is connected. Each attempt begins with another broker: one may hang, or name one that is gone. So the
 * next one does not wait for its end; the first to be connected is taken.
 * @throws what kafkajs throws, or `Late`: no broker can be reached.
 */
export async function connectedProducer(create: () => BatchProducer, timeoutMs: number): Promise<BatchProducer> {
  const endsAtMs = performance.now() + timeoutMs;
  const attempts: Promise<BatchProducer>[] = [];
  let first: BatchProducer | undefined;
  let mostAttempts = CONNECT_ATTEMPTS;
  for (;;) {
    const attempt = connect();
    attempts.push(attempt);
    const any = Promise.any(attempts);
    const waits = [any, attempt, ...(attempts.length < mostAttempts ? [pause(CONNECT_PATIENCE_MS)] : [])];
    await Promise.race(waits).catch(() => undefined);
    if (first) return first;
    if (attempts.length >= mostAttempts || performance.now() >= endsAtMs) {
      return any.catch((error: unknown) => {
        throw (error as AggregateError).errors.at(-1);
      });
    }
    any.catch(() => undefined);
  }

  async function connect(): Promise<BatchProducer> {
    const producer = create();
    try {
      await producer.connect(Math.min(CONNECT_TIMEOUT_MS, endsAtMs - performance.now()));
    } catch (error) {
      if (!(error instanceof Late)) mostAttempts = ATTEMPTS_WHEN_REFUSED;
      throw error;
    }
    if (first) void producer.close();
    first ??= producer;
    return first;
  }
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * @throws {Error} when a topic has no offset: kafkajs forgets a topic whose leader moved, during a repetition, to a broker
 * that had answered for its other topics.
 */
function offsetsOf(answers: readonly RecordMetadata[], batch: TopicRecords): Map<string, bigint> {
  const offsets = new Map<string, bigint>();
  for (const { topicName, baseOffset } of answers) {
    const offset = BigInt(baseOffset ?? -1);
    // Of a topic that was written twice, for the same reason, the copy that lies behind.
    if (offset > (offsets.get(topicName) ?? -1n)) offsets.set(topicName, offset);
  }
  for (const topic of batch.keys()) {
    if (!offsets.has(topic)) throw new Error(`the Kafka brokers gave no offset for topic ${topic}`);
  }
  return offsets;
}
