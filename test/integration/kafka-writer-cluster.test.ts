/** Three brokers: leaders move, die and freeze, replicas go missing, and topics are left without any. */

import { randomUUID } from 'node:crypto';

import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafkaClient } from '#adapters/kafka/client/client.ts';
import { type KafkaEventWriter, kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { appendAll, expectExact } from '#test/support/kafka-appends.ts';
import { numberedEvents, readTopic, settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const PATIENCE_MS = 120_000;
const BATCH_SIZE = 10;

describeKafka('the writer of the event log on three brokers', () => {
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;
  let admin: Admin;
  let writer: KafkaEventWriter;

  beforeAll(async () => {
    kafka = await startTestKafka({ nodes: 3 });
    admin = kafkaClient(settingsFor(kafka.brokers), silentLogger).admin();
    await admin.connect();
    writer = newWriter();
  }, PATIENCE_MS);
  afterAll(async () => {
    await Promise.all([writer?.close(), admin?.disconnect()]);
    await kafka?.stop();
  });

  it(
    'follows a leader that moves while the old one lives: in order, and nothing twice but batches that were given up',
    async () => {
      const [moving, other] = [await newTopic([1, 2]), await newTopic([2, 3])];
      const appended = await Promise.all(
        [moving, other].map((topic, index) =>
          appendAll(writer, topic, numberedEvents(index + 1, 400), {
            batchSize: BATCH_SIZE,
            async beforeBatch(batch) {
              if (topic === moving && batch === 10) await move(topic, [2, 3]);
              // The first that come after it still go to the old one, which lives and refuses them.
              if (topic === moving && batch === 30) await untilMoved(topic);
            },
          }),
        ),
      );
      // A producer repeats its call for 1.5 s, which writes nothing twice. When the move takes longer, others write the
      // batch under way again, one in the joint call's place and one for each append that is tried again.
      for (const each of appended) {
        const repeated = await expectExact(kafka.brokers, each);
        expect(repeated % BATCH_SIZE).toBe(0);
        expect(repeated / BATCH_SIZE).toBeLessThanOrEqual(1 + 2 * each.failures.length);
      }

      async function untilMoved(topic: string): Promise<void> {
        await expect.poll(() => leaderOf(topic), { timeout: 30_000 }).not.toBe(1);
      }
    },
    PATIENCE_MS,
  );

  it(
    'never acknowledges what it did not write when too few replicas are in sync, and then enough again',
    async () => {
      const topic = await newTopic([1, 2, 3], { 'min.insync.replicas': '3' });
      const append = (seq: number, mark: string) =>
        writer.append({ topic, lastPosition: 0n, events: numberedEvents(1, 1, { firstSeq: seq, mark }) });
      await writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 1) });
      await kafka.node(3).kill9();
      await expect(append(2, 'rejected-')).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
      await kafka.node(3).start();
      await expect.poll(() => inSyncReplicas(topic), { timeout: 30_000 }).toBe(3);
      // The same number of records, other ones: a producer that goes on has them taken for the rejected ones.
      const [run] = await append(2, 'second-');
      const records = await readTopic(kafka.brokers, topic);
      expect(records.find(({ offset }) => offset === run!.firstPosition)?.id).toBe('second-1-2');
    },
    PATIENCE_MS,
  );

  it(
    'goes on when a leader is killed: nothing is lost, and readers get all once and in order',
    async () => {
      const topics = [await newTopic([1, 2, 3]), await newTopic([2, 3, 1]), await newTopic([3, 1, 2])];
      let restart: Promise<void> | undefined;
      const appended = await Promise.all(
        topics.map((topic, index) =>
          appendAll(writer, topic, numberedEvents(index + 1, 3_000), {
            batchSize: 50,
            async beforeBatch(batch) {
              if (index === 0 && batch === 20) await kafka.node(1).kill9();
              if (index === 0 && batch === 40) restart = kafka.node(1).start();
            },
          }),
        ),
      );
      await restart;
      for (const each of appended) await expectExact(kafka.brokers, each);
    },
    PATIENCE_MS,
  );

  it(
    'leaves a leader that is frozen for another, while the topics of the others go on',
    async () => {
      const frozen = await newTopic([1, 2, 3]);
      const others = [await newTopic([2, 3]), await newTopic([3, 2])];
      await Promise.all([frozen, ...others].map((topic) => appendFirst(topic)));
      kafka.node(1).freeze();
      const frozenMs = performance.now();
      const appending = [frozen, ...others].map(async (topic) => {
        const appended = await appendAll(writer, topic, numberedEvents(1, 20), { batchSize: 5 });
        return { appended, tookMs: performance.now() - frozenMs };
      });
      const done = await Promise.all(appending);
      // By the brokers that live: the frozen one would not know that it leads nothing any more.
      for (const { appended } of done) await expectExact(kafka.brokers.slice(1), appended);
      kafka.node(1).thaw();
      const [ofFrozen, ...ofOthers] = done.map(({ tookMs }) => tookMs);
      expect(ofFrozen).toBeLessThan(25_000);
      expect(Math.max(...ofOthers)).toBeLessThan(16_000);
    },
    PATIENCE_MS,
  );

  it(
    'does not mind a topic that has no leader, neither its own nor that of a stranger',
    async () => {
      await newTopic([3]);
      const [dead, alive] = [await newTopic([3]), await newTopic([1, 2])];
      const fresh = newWriter();
      await appendFirst(dead);
      await kafka.node(3).kill9();
      await expect.poll(() => leaderOf(dead), { timeout: 20_000 }).toBeUndefined();
      const [rejected, written] = await Promise.allSettled([
        fresh.append({ topic: dead, lastPosition: 0n, events: numberedEvents(1, 1, { firstSeq: 2 }) }),
        appendAll(fresh, alive, numberedEvents(2, 200)),
      ]);
      await fresh.close();
      expect(rejected).toMatchObject({ status: 'rejected', reason: { reason: 'ServiceUnavailable' } });
      expect(written).toMatchObject({ status: 'fulfilled', value: { failures: [] } });
      await kafka.node(3).start();
    },
    PATIENCE_MS,
  );

  function newWriter(): KafkaEventWriter {
    return kafkaEventWriter({ settings: settingsFor(kafka.brokers), logger: silentLogger, compression: 'none' });
  }

  async function appendFirst(topic: string): Promise<void> {
    await writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 1) });
  }

  /** On these brokers; the first leads. */
  async function newTopic(replicas: number[], config: Readonly<Record<string, string>> = {}): Promise<string> {
    const topic = `cluster-${randomUUID()}`;
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
    await admin.createTopics({
      waitForLeaders: false,
      topics: [
        {
          topic,
          numPartitions: -1,
          replicationFactor: -1,
          replicaAssignment: [{ partition: 0, replicas }],
          configEntries,
        },
      ],
    });
    await expect.poll(() => leaderOf(topic), { timeout: 10_000 }).toBe(replicas[0]);
    return topic;
  }

  async function leaderOf(topic: string): Promise<number | undefined> {
    return (await partitionOf(topic))?.leader;
  }

  async function inSyncReplicas(topic: string): Promise<number | undefined> {
    return (await partitionOf(topic))?.isr.length;
  }

  async function partitionOf(topic: string): Promise<{ leader: number; isr: number[] } | undefined> {
    const metadata = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => undefined);
    return metadata?.topics[0]?.partitions[0];
  }

  async function move(topic: string, replicas: number[]): Promise<void> {
    await admin.alterPartitionReassignments({
      topics: [{ topic, partitionAssignment: [{ partition: 0, replicas }] }],
    });
  }
});
