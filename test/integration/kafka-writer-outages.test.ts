/** One broker: away, killed under load, and behind a network that loses its answers. */

import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { type KafkaEventWriter, kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { NumberedEvent } from '#core/event.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { appendAll, expectExact } from '#test/support/kafka-appends.ts';
import { numberedEvents, readTopic, settingsFor } from '#test/support/kafka-events.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';
import { silentLogger } from '#test/support/silent-logger.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

const SETTINGS = { retentionMs: 3_600_000, retentionBytes: undefined };
const PATIENCE_MS = 120_000;

describeKafka('the writer of the event log, when the broker is in trouble', () => {
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;
  let proxy: TcpProxy;
  let isAnswerLost: () => boolean = () => false;
  let writer: KafkaEventWriter;

  beforeAll(async () => {
    const [port] = await freePorts(1);
    proxy = await startTcpProxy({
      host: '127.0.0.1',
      port: port!,
      answers: (toClient) => (bytes) => (isAnswerLost() ? proxy.cut() : toClient(bytes)),
    });
    kafka = await startTestKafka({ port: port!, advertised: [`127.0.0.1:${proxy.port}`] });
    writer = kafkaEventWriter({ settings: settingsFor(kafka.brokers), logger: silentLogger, compression: 'none' });
  }, PATIENCE_MS);
  afterAll(async () => {
    await writer?.close();
    await kafka?.stop();
    await proxy?.stop();
  });

  it(
    'writes on after answers were lost at random: nothing is lost, and readers get all once and in order',
    async () => {
      const topics = await newTopics(3);
      const random = seededRandom(testSeed());
      isAnswerLost = () => random.next() < 0.3;
      const appended = await Promise.all(
        topics.map((topic, index) => appendAll(writer, topic, numberedEvents(index + 1, 1_200), { batchSize: 20 })),
      );
      isAnswerLost = () => false;
      for (const each of appended) await expectExact(kafka.brokers, each);
    },
    PATIENCE_MS,
  );

  it(
    'never acknowledges a batch in place of another whose answer was lost',
    async () => {
      const [topic] = await newTopics(1);
      await writer.append({ topic: topic!, lastPosition: undefined, events: numberedEvents(1, 1) });
      const marked = (mark: string): NumberedEvent[] => numberedEvents(1, 3, { firstSeq: 2, mark });
      // The broker has it, and no answer comes through for as long as somebody asks.
      isAnswerLost = () => true;
      await expect(writer.append({ topic: topic!, lastPosition: 0n, events: marked('first-') })).rejects.toMatchObject({
        reason: 'ServiceUnavailable',
      });
      isAnswerLost = () => false;
      // As many records, other ones: a producer that goes on would have them taken for the first.
      const [run] = await writer.append({ topic: topic!, lastPosition: 0n, events: marked('second-') });
      const records = await readTopic(kafka.brokers, topic!);
      expect(records.filter(({ id }) => id.startsWith('first-'))).toHaveLength(3);
      const there = records.filter(({ offset }) => offset >= run!.firstPosition).map(({ id }) => id);
      expect(there).toEqual(marked('second-').map(({ id }) => id));
    },
    PATIENCE_MS,
  );

  it(
    'gives up on a network that swallows everything, and is back as soon as it works again',
    async () => {
      const [topic] = await newTopics(1);
      await writer.append({ topic: topic!, lastPosition: undefined, events: numberedEvents(1, 1) });
      proxy.stall();
      const startedMs = performance.now();
      const append = { topic: topic!, lastPosition: 0n, events: numberedEvents(1, 5, { firstSeq: 2 }) };
      await expect(writer.append(append)).rejects.toMatchObject({
        reason: 'ServiceUnavailable',
        details: { retryAfterSeconds: 1 },
      });
      expect(performance.now() - startedMs).toBeLessThan(17_000);
      await proxy.resume();
      const resumedMs = performance.now();
      const appended = await appendAll(writer, topic!, numberedEvents(1, 6));
      expect(performance.now() - resumedMs).toBeLessThan(6_000);
      await expectExact(kafka.brokers, appended);
      // The producers that were given up have left nothing behind.
      await expect.poll(() => proxy.connections, { timeout: 10_000 }).toBeLessThan(4);
    },
    PATIENCE_MS,
  );

  it(
    'survives that the broker is killed under load: nothing is lost, and readers get all once and in order',
    async () => {
      const topics = await newTopics(5);
      let batches = 0;
      let restart: Promise<void> | undefined;
      const appended = await Promise.all(
        topics.map((topic, index) =>
          appendAll(writer, topic, numberedEvents(index + 1, 4_000, { size: 500 }), {
            batchSize: 100,
            beforeBatch() {
              batches += 1;
              if (batches === 60) restart = killAndStart();
            },
          }),
        ),
      );
      await restart;
      expect(restart).toBeDefined();
      for (const each of appended) await expectExact(kafka.brokers, each);
    },
    PATIENCE_MS,
  );

  it(
    'rejects at once that can be tried again while the broker is away, idles, and recovers by itself',
    async () => {
      const topics = await newTopics(2);
      await kafka.node(1).stop();
      const cpu = process.cpuUsage();
      const startedMs = performance.now();
      const appending = topics.map((topic, index) => appendAll(writer, topic, numberedEvents(index + 1, 30)));
      await expect.poll(() => performance.now() - startedMs, { interval: 500, timeout: 20_000 }).toBeGreaterThan(8_000);
      const used = process.cpuUsage(cpu);
      const share = (used.user + used.system) / 1_000 / (performance.now() - startedMs);
      await kafka.node(1).start();
      const appended = await Promise.all(appending);
      for (const each of appended) {
        expect(await expectExact(kafka.brokers, each)).toBe(0);
        // Each after a second or two of trying; then the caller waits as long as it wants to.
        expect(each.failures.length).toBeGreaterThan(1);
        expect(each.failures.length).toBeLessThan(12);
      }
      expect(share).toBeLessThan(0.2);
    },
    PATIENCE_MS,
  );

  async function killAndStart(): Promise<void> {
    await kafka.node(1).kill9();
    await kafka.node(1).start();
  }

  async function newTopics(count: number): Promise<string[]> {
    const admin = kafkaTopicAdmin({ settings: settingsFor(kafka.brokers), logger: silentLogger });
    const names = Array.from({ length: count }, () => `outage-${randomUUID()}`);
    for (const name of names) await admin.ensure(name, SETTINGS);
    return names;
  }
});
