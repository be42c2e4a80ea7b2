/**
 * Writes events to Kafka for some seconds, as fast as it goes: the event log's writer, or stock kafkajs as the floor. A
 * process of its own, because the writer changes kafkajs. Prints a `LoopResult` as one line of JSON.
 */

import { setTimeout as pause } from 'node:timers/promises';

import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { toRecord } from '#adapters/kafka/records.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { NumberedEvent } from '#core/event.ts';
import { numberedEvents, settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

export interface LoopOptions {
  readonly mode: 'stock' | 'writer';
  readonly brokers: readonly string[];
  /** They exist. Each call writes to all of them. */
  readonly topics: readonly string[];
  readonly recordsPerTopic: number;
  /** Of each object, about. */
  readonly bytes: number;
  /** @default as many as it can */
  readonly maxPerSecond?: number;
}

export interface LoopResult {
  readonly recordsPerSecond: number;
  readonly cpuMicrosPerRecord: number;
  readonly rssMebibytes: number;
}

const WARM_UP_MS = 1_500;
const MEASURED_MS = 4_000;

const options: LoopOptions = JSON.parse(process.argv[2] ?? '{}');
const { send, close } = options.mode === 'stock' ? await stockLoop(options) : writerLoop(options);
await loop(WARM_UP_MS);
const cpuBefore = process.cpuUsage();
const { records, tookMs } = await loop(MEASURED_MS);
const { user, system } = process.cpuUsage(cpuBefore);
const result: LoopResult = {
  recordsPerSecond: (records / tookMs) * 1_000,
  cpuMicrosPerRecord: (user + system) / records,
  rssMebibytes: process.memoryUsage.rss() / 1_048_576,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
await close();

interface Loop {
  /** One round: the events to each topic. */
  readonly send: (events: readonly NumberedEvent[]) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

async function loop(durationMs: number): Promise<{ records: number; tookMs: number }> {
  const { recordsPerTopic, bytes, topics, maxPerSecond = Number.POSITIVE_INFINITY } = options;
  const startedMs = performance.now();
  let written = 0;
  while (performance.now() - startedMs < durationMs) {
    // Made anew in each round, as a publisher's are.
    await send(numberedEvents(1, recordsPerTopic, { size: bytes, firstSeq: written + 1 }));
    written += recordsPerTopic * topics.length;
    const aheadMs = (written / maxPerSecond) * 1_000 - (performance.now() - startedMs);
    if (aheadMs > 1) await pause(aheadMs);
  }
  return { records: written, tookMs: performance.now() - startedMs };
}

async function stockLoop({ brokers, topics }: LoopOptions): Promise<Loop> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ idempotent: true, createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  return {
    send: (events) =>
      producer.sendBatch({
        acks: -1,
        topicMessages: topics.map((topic) => ({ topic, messages: events.map(toRecord) })),
      }),
    close: () => producer.disconnect(),
  };
}

function writerLoop({ brokers, topics }: LoopOptions): Loop {
  const writer = kafkaEventWriter({ settings: settingsFor(brokers), logger: silentLogger, compression: 'none' });
  return {
    send: (events) => Promise.all(topics.map((topic) => writer.append({ topic, lastPosition: undefined, events }))),
    close: () => writer.close(),
  };
}
