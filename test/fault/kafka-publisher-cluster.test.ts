import kafkajs, { type Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { kafkaClient } from '#adapters/kafka/client/client.ts';
import type { Kafka } from '#infra/kafka/kafka-server.ts';
import { type KafkaTenant, startKafkaTenant } from '#test/fault/kafka-tenants.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';
import { longestGapMs, type RunningPublisher, runPublisher } from '#test/support/running-publisher.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const USUAL = ['usual-1', 'usual-2', 'usual-3', 'usual-4', 'usual-5', 'usual-6'];
/** Their records must be on all three brokers. */
const STRICT = ['strict-1', 'strict-2', 'strict-3'];
const { TOPIC } = kafkajs.ConfigResourceTypes;
/** Of topics that have a leader again, some seconds after a fault. */
const STANDSTILL_LIMIT_MS = 30_000;
const PATIENCE_MS = 120_000;

describeKafka('publishing into a cluster of three brokers loses, repeats and reorders nothing', () => {
  let kafka: Kafka;
  let admin: Admin;
  let database: PreparedDatabase;
  let publisher: RunningPublisher;
  let tenants: readonly KafkaTenant[] = [];

  beforeAll(async () => {
    kafka = await startTestKafka({ nodes: 3 });
    admin = kafkaClient(settingsFor(kafka.brokers), silentLogger).admin();
    await admin.connect();
    database = await prepareKafkaDatabase([...USUAL, ...STRICT], kafka.brokers);
    publisher = runPublisher(database.url, kafka.brokers);
    tenants = [...USUAL, ...STRICT].map((tenant) =>
      startKafkaTenant({ database, brokers: kafka.internalBrokers, tenant, pauseMs: 25 }),
    );
    for (const tenant of of('strict')) await wantReplicas((await tenant.topic()).topic, 3);
    await untilAllPublished();
  }, PATIENCE_MS);
  afterAll(async () => {
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await publisher?.stop();
    await admin?.disconnect().catch(() => undefined);
    await database?.close();
    await kafka?.stop();
  }, PATIENCE_MS);

  test('while leaders move, and their brokers live', { timeout: PATIENCE_MS }, async () => {
    await during('leaders moved', async () => {
      for (const tenant of of('usual').slice(0, 3)) await moveLeader(tenant);
    });
  });

  test('while a broker is killed, and replicas are too few until it is back', { timeout: PATIENCE_MS }, async () => {
    await during('broker killed', async () => {
      await kafka.node(3).kill9();
      // Those that it led have other leaders.
      await untilMorePublished(of('usual'));
      expect((await Promise.all(of('strict').map(isHeld))).every(Boolean)).toBe(true);
      await kafka.node(3).start();
    });
  });

  test('while a broker is frozen, and when it wakes', { timeout: PATIENCE_MS }, async () => {
    await during('broker frozen', async () => {
      const { leader } = await partitionOf((await tenants[0]!.topic()).topic);
      kafka.node(leader).freeze();
      await untilMorePublished(of('usual')).finally(() => kafka.node(leader).thaw());
    });
  });

  test('while there is no majority of brokers', { timeout: PATIENCE_MS }, async () => {
    await during('two brokers killed', async () => {
      await Promise.all([kafka.node(2).kill9(), kafka.node(3).kill9()]);
      await vi.waitFor(async () => expect(await isHeld(tenants[0]!)).toBe(true), 10_000);
      await Promise.all([kafka.node(2).start(), kafka.node(3).start()]);
    });
  });

  async function during(what: string, fault: () => Promise<void>): Promise<void> {
    const startMs = performance.now();
    await fault();
    const faultMs = performance.now() - startMs;
    await untilAllPublished(tenants, 60_000);
    const tookMs = performance.now() - startMs;
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await untilAllPublished();
    const untilMs = performance.now();
    const gaps = await Promise.all(
      tenants.map(async ({ topic }) => longestGapMs(publisher, (await topic()).stream, startMs, untilMs)),
    );
    const logs = await Promise.all(tenants.map(({ expectWhole }) => expectWhole()));
    const events = logs.reduce((sum, log) => sum + log.events.length, 0);
    const repeated = logs.reduce((sum, log) => sum + log.repeated, 0);
    console.log(
      `${what}: ${events} events so far, 0 lost, 0 reordered, ${repeated} repeated and dropped by readers; ` +
        `fault ${(faultMs / 1000).toFixed(1)} s, all published after ${(tookMs / 1000).toFixed(1)} s; nothing published for ` +
        tenants.map(({ tenant }, index) => `${tenant} ${((gaps[index] ?? 0) / 1000).toFixed(1)}`).join(', '),
    );
    for (const { writer } of tenants) writer.resume();
  }

  function of(part: string): readonly KafkaTenant[] {
    return tenants.filter(({ tenant }) => tenant.includes(part));
  }

  async function untilAllPublished(some = tenants, timeoutMs?: number): Promise<void> {
    await Promise.all(some.map(({ writer, untilPublished }) => untilPublished(writer.count, timeoutMs)));
  }

  async function untilMorePublished(some: readonly KafkaTenant[]): Promise<void> {
    await Promise.all(some.map(({ writer, untilPublished }) => untilPublished(writer.count + 50, STANDSTILL_LIMIT_MS)));
  }

  /** It has a batch that is not finished, since a second. */
  async function isHeld({ tenant }: KafkaTenant): Promise<boolean> {
    const [row] = await database.sql<{ held: boolean }[]>`
      select exists (select from plumbline.outbox
        where tenant = ${tenant} and occurred_at < clock_timestamp() - interval '1 second') as held`;
    return row?.held ?? false;
  }

  /** Another broker becomes the leader: this one is no replica for a moment. */
  async function moveLeader({ topic }: KafkaTenant): Promise<void> {
    const { topic: name } = await topic();
    const { leader } = await partitionOf(name);
    const others = [1, 2, 3].filter((id) => id !== leader);
    for (const replicas of [others, [...others, leader]]) {
      const partitionAssignment = [{ partition: 0, replicas }];
      await admin.alterPartitionReassignments({ topics: [{ topic: name, partitionAssignment }] });
      await vi.waitFor(
        async () => {
          const { leader: now, isr } = await partitionOf(name);
          expect(now).not.toBe(leader);
          expect(isr).toHaveLength(replicas.length);
        },
        { timeout: 20_000, interval: 50 },
      );
    }
  }

  async function partitionOf(topic: string): Promise<{ leader: number; isr: number[] }> {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const [partition] = topics[0]?.partitions ?? [];
    if (!partition) throw new Error(`topic ${topic} has no partition`);
    return partition;
  }

  async function wantReplicas(topic: string, count: number): Promise<void> {
    const configEntries = [
      { name: 'min.insync.replicas', value: String(count) },
      { name: 'max.message.bytes', value: '8388608' },
    ];
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: topic, configEntries }] });
  }
});
