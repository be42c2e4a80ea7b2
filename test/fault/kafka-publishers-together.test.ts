import { afterAll, beforeAll, expect, test } from 'vitest';
import { type KafkaTenant, startKafkaTenant } from '#test/fault/kafka-tenants.ts';
import { type Child, startChild } from '#test/support/child.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';

const TENANTS = ['acme', 'globex', 'initech', 'hooli'];
const OBJECTS = 150;
const ROB_EVERY_MS = 30;

describeKafka('publishers into Kafka', () => {
  let brokers: readonly string[];
  let database: PreparedDatabase;
  let tenants: readonly KafkaTenant[] = [];

  beforeAll(async () => {
    brokers = await kafkaBrokers();
    database = await prepareKafkaDatabase(TENANTS, brokers);
    tenants = TENANTS.map((tenant) => startKafkaTenant({ database, brokers, tenant, pauseMs: 5 }));
  });
  afterAll(async () => {
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await database?.close();
  });

  test.each([2, 4])('work together, %i of them, also when they take batches from each other', async (count) => {
    const publishers = await Promise.all(Array.from({ length: count }, (_, n) => startPublisher(n)));
    const working = new AbortController();
    const robbing = rob(working.signal);
    await Promise.all(tenants.map(({ writer, untilPublished }) => untilPublished(writer.count + OBJECTS)));
    working.abort();
    await robbing;
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await Promise.all(tenants.map(({ writer, untilPublished }) => untilPublished(writer.count)));
    const logs = await Promise.all(tenants.map(({ expectWhole }) => expectWhole()));
    for (const publisher of publishers) publisher.end();
    await Promise.all(publishers.map(({ exit }) => exit));
    const producers = new Set(logs.flatMap(({ events }) => events.slice(-OBJECTS).map(({ producerId }) => producerId)));
    const events = logs.reduce((sum, log) => sum + log.events.length, 0);
    const repeated = logs.reduce((sum, log) => sum + log.repeated, 0);
    console.log(`${count} publishers: ${events} events so far, ${repeated} repeated, by ${producers.size} producers`);
    expect(producers.size).toBeGreaterThan(1);
    expect(repeated).toBeGreaterThan(0);
    for (const { writer } of tenants) writer.resume();
  });

  async function startPublisher(index: number): Promise<Child> {
    const mode = index % 2 === 0 ? 'resident' : 'cron';
    const child = startChild('test/support/publisher-process.ts', [database.url, mode, brokers.join()]);
    expect(await child.nextLine()).toBe('ready');
    return child;
  }

  async function rob(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await database.sql`update plumbline.manifest set held_until = '-infinity'`;
      await new Promise((resolve) => setTimeout(resolve, ROB_EVERY_MS));
    }
  }
});
