/** Three brokers: tails while leaders move, die, freeze and come back. */

import { randomUUID } from 'node:crypto';
import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { kafkaClient } from '#adapters/kafka/client/client.ts';
import type { KafkaEventLog } from '#adapters/kafka/event-log.ts';
import { type KafkaEventWriter, kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { ORIGIN } from '#core/ports/event-log.ts';
import { appendAll } from '#test/support/kafka-appends.ts';
import { numberedEvents, settingsFor } from '#test/support/kafka-events.ts';
import {
  type Following,
  follow,
  type IndexInHand,
  indexInHand,
  openLog,
  seqsFrom,
} from '#test/support/kafka-reader.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const PATIENCE_MS = 180_000;
/** The first replica of a topic leads it again soon after it can. */
const BROKER_SETTINGS = {
  'leader.imbalance.check.interval.seconds': '1',
  'leader.imbalance.per.broker.percentage': '0',
};
const ALL = { maxCount: 1_000_000, maxBytes: 1_000_000_000 };

describeKafka('the reader of the event log on three brokers', () => {
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;
  let admin: Admin;
  let writer: KafkaEventWriter;
  let index: IndexInHand;
  let log: KafkaEventLog;
  let streams = 0;

  beforeAll(async () => {
    kafka = await startTestKafka({ nodes: 3, settings: BROKER_SETTINGS });
    admin = kafkaClient(settingsFor(kafka.brokers), silentLogger).admin();
    await admin.connect();
    writer = newWriter();
    index = indexInHand();
    log = openLog(kafka.brokers, index);
  }, PATIENCE_MS);
  afterAll(async () => {
    await Promise.all([log?.close(), writer?.close(), admin?.disconnect()]);
    await kafka?.stop();
  });

  it(
    'follows a leader that moves while the old one stays as a replica, and is as quick as before within 3 s',
    async () => {
      const { stream, topic } = await newStream([1, 2, 3]);
      const tail = follow(log, stream);
      await append(topic, stream, 1, 100);
      await tail.until(100);
      await admin.alterPartitionReassignments({
        topics: [{ topic, partitionAssignment: [{ partition: 0, replicas: [2, 1, 3] }] }],
      });
      await expect.poll(() => leaderOf(topic), { timeout: 20_000 }).toBe(2);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const latencies = await measure(topic, stream, tail, 101, 120);
      expect(tail.seqs).toEqual(seqsFrom(1, 120));
      console.info(`after the move: ${Math.round(median(latencies))} ms from the answer to its event`);
      // A replica that does not lead hears with the next event, or after 500 ms, that this one may be read.
      expect(median(latencies)).toBeLessThan(60);
      tail.stop();
    },
    PATIENCE_MS,
  );

  it(
    'loses nothing, and refuses nothing, when the leader is killed under load and comes back',
    async () => {
      const streamsOfAll = await Promise.all(
        [
          [1, 2, 3],
          [2, 3, 1],
          [3, 1, 2],
        ].map((replicas) => newStream(replicas)),
      );
      const tails = streamsOfAll.map(({ stream }) => follow(log, stream));
      const appending = streamsOfAll.map(({ topic, stream }) => append(topic, stream, 1, 1_500));
      await Promise.all(tails.map((tail) => tail.until(200)));
      await kafka.node(1).kill9();
      await Promise.all(tails.map((tail) => tail.until(700)));
      await kafka.node(1).start();
      // It catches up, and is made the leader again: by then a tail may have asked it for what it did not have yet.
      await Promise.all(appending);
      await expect.poll(() => inSync(streamsOfAll[0]!.topic), { timeout: 60_000 }).toBe(3);
      await expect.poll(() => leaderOf(streamsOfAll[0]!.topic), { timeout: 60_000 }).toBe(1);
      await Promise.all(streamsOfAll.map(({ topic, stream }) => append(topic, stream, 1_501, 1_600)));
      await Promise.all(tails.map((tail) => tail.until(1_600)));
      for (const tail of tails) {
        expect(tail.refusal).toBeUndefined();
        expect(tail.seqs).toEqual(seqsFrom(1, 1_600));
      }
      expect(index.advances).toEqual([]);
      console.info(`longest gaps when the leader was killed: ${tails.map(longestGapMs).map(Math.round).join(', ')} ms`);
      stop(...tails);
    },
    PATIENCE_MS,
  );

  it(
    'leaves a leader that is frozen for the new one, while the topics of the others go on',
    async () => {
      const frozen = await newStream([1, 2, 3]);
      const other = await newStream([2, 3]);
      const [frozenTail, otherTail] = [follow(log, frozen.stream), follow(log, other.stream)];
      await Promise.all([append(frozen.topic, frozen.stream, 1, 20), append(other.topic, other.stream, 1, 20)]);
      await Promise.all([frozenTail.until(20), otherTail.until(20)]);
      kafka.node(1).freeze();
      onTestFinished(() => kafka.node(1).thaw());
      const frozenAtMs = performance.now();
      // Each by a writer of its own: a writer keeps what it writes together waiting.
      const otherWriter = newWriter();
      const appending = append(other.topic, other.stream, 21, 400, otherWriter);
      await append(frozen.topic, frozen.stream, 21, 40);
      const writtenAtMs = performance.now();
      await frozenTail.until(40);
      const readAtMs = performance.now();
      await appending;
      await otherTail.until(400);
      await otherWriter.close();
      expect(await log.read(frozen.stream, ORIGIN, ALL)).toMatchObject({ events: { length: 40 }, more: false });
      expect(frozenTail.seqs).toEqual(seqsFrom(1, 40));
      expect(otherTail.seqs).toEqual(seqsFrom(1, 400));
      expect(longestGapMs(otherTail)).toBeLessThan(8_000);
      console.info(
        `frozen leader: written after ${Math.round(writtenAtMs - frozenAtMs)} ms, all read ` +
          `${Math.round(readAtMs - writtenAtMs)} ms later; the other topic's longest gap ${Math.round(longestGapMs(otherTail))} ms`,
      );
      expect(readAtMs - writtenAtMs).toBeLessThan(8_000);
      stop(frozenTail, otherTail);
    },
    PATIENCE_MS,
  );

  it(
    'goes on with the others while a topic has no leader, and with that one when it has one again',
    async () => {
      const [dead, alive] = [await newStream([3]), await newStream([1, 2])];
      const [deadTail, aliveTail] = [follow(log, dead.stream), follow(log, alive.stream)];
      await Promise.all([append(dead.topic, dead.stream, 1, 5), append(alive.topic, alive.stream, 1, 5)]);
      await Promise.all([deadTail.until(5), aliveTail.until(5)]);
      await kafka.node(3).kill9();
      await expect.poll(() => leaderOf(dead.topic), { timeout: 20_000 }).toBeUndefined();
      await append(alive.topic, alive.stream, 6, 200);
      await aliveTail.until(200);
      const fresh = follow(log, alive.stream);
      await fresh.until(200);
      await expect(log.read(dead.stream, ORIGIN, ALL)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
      expect((await log.ranges([dead.stream, alive.stream])).size).toBe(2);
      await kafka.node(3).start();
      await append(dead.topic, dead.stream, 6, 10);
      await deadTail.until(10);
      expect(deadTail.seqs).toEqual(seqsFrom(1, 10));
      expect(aliveTail.seqs).toEqual(seqsFrom(1, 200));
      stop(deadTail, aliveTail, fresh);
    },
    PATIENCE_MS,
  );

  /** On these brokers; the first leads. */
  async function newStream(replicas: number[]): Promise<{ stream: bigint; topic: string }> {
    const topic = `cluster-${randomUUID()}`;
    await admin.createTopics({
      waitForLeaders: false,
      topics: [{ topic, numPartitions: -1, replicationFactor: -1, replicaAssignment: [{ partition: 0, replicas }] }],
    });
    await expect.poll(() => leaderOf(topic), { timeout: 20_000 }).toBe(replicas[0]);
    const stream = BigInt((streams += 1));
    index.place(stream, topic);
    return { stream, topic };
  }

  function newWriter(): KafkaEventWriter {
    return kafkaEventWriter({ settings: settingsFor(kafka.brokers), logger: silentLogger, compression: 'none' });
  }

  async function append(topic: string, stream: bigint, first: number, last: number, by = writer): Promise<void> {
    await appendAll(by, topic, numberedEvents(Number(stream), last - first + 1, { firstSeq: first }));
  }

  /** One event at a time, seldom: from when it was acknowledged until it was read. */
  async function measure(
    topic: string,
    stream: bigint,
    tail: Following,
    first: number,
    last: number,
  ): Promise<readonly number[]> {
    const acknowledgedAtMs: number[] = [];
    for (let seq = first; seq <= last; seq += 1) {
      await append(topic, stream, seq, seq);
      acknowledgedAtMs.push(performance.now());
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await tail.until(last);
    return acknowledgedAtMs.map((atMs, nth) => Math.max(0, tail.arrivedAtMs[first - 1 + nth]! - atMs));
  }

  async function leaderOf(topic: string): Promise<number | undefined> {
    return (await partitionOf(topic))?.leader;
  }

  async function inSync(topic: string): Promise<number | undefined> {
    return (await partitionOf(topic))?.isr.length;
  }

  async function partitionOf(topic: string): Promise<{ leader: number; isr: number[] } | undefined> {
    const metadata = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => undefined);
    return metadata?.topics[0]?.partitions[0];
  }
});

function longestGapMs({ arrivedAtMs }: Following): number {
  return Math.max(...arrivedAtMs.slice(1).map((atMs, nth) => atMs - arrivedAtMs[nth]!));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function stop(...tails: readonly Following[]): void {
  for (const tail of tails) tail.stop();
}
