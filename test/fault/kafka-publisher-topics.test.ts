import kafkajs, { type Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { kafkaClient } from '#adapters/kafka/client/client.ts';
import { type KafkaTenant, startKafkaTenant } from '#test/fault/kafka-tenants.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import type { StreamTopic } from '#test/support/kafka-topic.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';
import { longestGapMs, type RunningPublisher, runPublisher } from '#test/support/running-publisher.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const CALM = ['calm-1', 'calm-2'];
const TENANTS = [...CALM, 'deleted', 'idle', 'emptied', 'strange', 'outnumbered', 'retried', 'skipped'];
/** Of tenants with whose topics all is well. */
const LONGEST_GAP_MS = 5_000;
/** A topic that is missing is looked for every 10 s, and given up after 10 s. */
const REPLACED_WITHIN_MS = 25_000;
const TOPIC_LIMIT = 8_388_608;
const { TOPIC } = kafkajs.ConfigResourceTypes;

describeKafka('a topic', () => {
  let brokers: readonly string[];
  let admin: Admin;
  let database: PreparedDatabase;
  let publisher: RunningPublisher;
  let tenants: ReadonlyMap<string, KafkaTenant>;
  let startMs: number;

  beforeAll(async () => {
    brokers = await kafkaBrokers();
    admin = kafkaClient(settingsFor(brokers), silentLogger).admin();
    await admin.connect();
    database = await prepareKafkaDatabase(TENANTS, brokers);
    publisher = runPublisher(database.url, brokers);
    tenants = new Map(TENANTS.map((tenant) => [tenant, startKafkaTenant({ database, brokers, tenant, pauseMs: 30 })]));
    await Promise.all([...tenants.values()].map(({ untilPublished }) => untilPublished(20)));
    startMs = performance.now();
  });
  afterAll(async () => {
    await Promise.all([...(tenants?.values() ?? [])].map(({ writer }) => writer.pause()));
    await publisher?.stop();
    await admin?.disconnect();
    await database?.close();
  });

  test.concurrent('that is deleted holds its tenant, and is replaced by another in which the numbers go on', async () => {
    const tenant = of('deleted');
    const lost = await tenant.topic();
    await admin.deleteTopics({ topics: [lost.topic] });
    await vi.waitFor(
      async () => expect(await tenant.stream()).toMatchObject({ status: 'False', reason: 'TopicMissing' }),
      5_000,
    );
    expect(await rowOf(lost.topic)).toMatchObject({ missing_since: expect.any(Date), removed_at: null });
    await untilReplaced(lost, /the brokers do not know the topic any more/);
    await expectGoingOn(tenant, lost);
  });

  test.concurrent('that is deleted while nothing is published is found missing, and replaced', async () => {
    const tenant = of('idle');
    await tenant.writer.pause();
    await tenant.untilPublished(tenant.writer.count);
    const lost = await tenant.topic();
    await admin.deleteTopics({ topics: [lost.topic] });
    await untilReplaced(lost, /the brokers do not know the topic any more/);
    tenant.writer.resume();
    await tenant.untilPublished(tenant.writer.count + 1);
    await expectGoingOn(tenant, lost);
  });

  test.concurrent('that is deleted and made anew, empty, is replaced', async () => {
    const lost = await of('emptied').topic();
    await recreate(lost.topic);
    await untilReplaced(lost, /another one has its name|it was made anew, or has lost events|and events up to/);
    await expectGoingOn(of('emptied'), lost);
  });

  test.concurrent('that is made anew by a stranger, with records of his, is replaced', async () => {
    const lost = await of('strange').topic();
    await recreate(lost.topic);
    await produce(lost.topic, 5);
    await untilReplaced(lost, /another one has its name|it was made anew, or has lost events|and events up to/);
    await expectGoingOn(of('strange'), lost);
  });

  test.concurrent('that is made anew by a stranger, with more records than it had, is replaced', async () => {
    const lost = await of('outnumbered').topic();
    await recreate(lost.topic);
    await produce(lost.topic, 1_000);
    await untilReplaced(lost, /another one has its name|it was made anew, or has lost events/);
    await expectGoingOn(of('outnumbered'), lost);
  });

  test.concurrent('that refuses a record holds its tenant, until the record is tried again', async () => {
    const tenant = of('retried');
    const { topic, stream } = await tenant.topic();
    await limit(topic, 2_000);
    const uid = await writeLargeUntilHeld(tenant, stream);
    await limit(topic, TOPIC_LIMIT);
    await database.sql`select plumbline.quarantine_retry(${String(stream)}::bigint)`;
    await tenant.writer.pause();
    await tenant.untilPublished(tenant.writer.count);
    const { events } = await tenant.expectWhole();
    const large = events.findLast(({ key }) => key === uid);
    expect(large?.value?.length).toBeGreaterThan(5_000);
  });

  test.concurrent('that refuses a record holds its tenant, until the record is skipped', async () => {
    const tenant = of('skipped');
    const { topic, stream } = await tenant.topic();
    await limit(topic, 2_000);
    const uid = await writeLargeUntilHeld(tenant, stream);
    await database.sql`select plumbline.quarantine_skip(${String(stream)}::bigint, 'not needed')`;
    await tenant.writer.pause();
    await tenant.untilPublished(tenant.writer.count);
    const { events } = await tenant.expectWhole();
    const large = events.findLast(({ key }) => key === uid);
    expect(large?.value).toBeUndefined();
    expect(String(large?.headers['ce_type'])).toBe('dev.plumbline.skipped');
  });

  test('is the trouble of its tenant alone: others go on', async () => {
    for (const { tenant, writer, topic, untilPublished, expectWhole } of CALM.map(of)) {
      await writer.pause();
      const untilMs = performance.now();
      await untilPublished(writer.count);
      await expectWhole();
      const gapMs = longestGapMs(publisher, (await topic()).stream, startMs, untilMs);
      console.log(`${tenant}: ${writer.count} events, none for ${Math.round(gapMs)} ms at most`);
      expect(gapMs).toBeLessThan(LONGEST_GAP_MS);
      expect(writer.slowestMs).toBeLessThan(LONGEST_GAP_MS);
    }
  });

  async function untilReplaced({ tenant, topic }: StreamTopic, reason: RegExp): Promise<void> {
    const sinceMs = performance.now();
    await vi.waitFor(async () => expect((await rowOf(topic))['removed_reason']).toMatch(reason), {
      timeout: REPLACED_WITHIN_MS,
      interval: 50,
    });
    console.log(`${tenant}: replaced after ${((performance.now() - sinceMs) / 1000).toFixed(1)} s`);
  }

  /** All that was not published when the topic was lost is in the next one, behind all numbers that were given. */
  async function expectGoingOn(tenant: KafkaTenant, lost: StreamTopic): Promise<void> {
    const topic = `${lost.topic}-1`;
    const isGoingOn = { topic, status: 'True', reason: 'TopicReady' };
    await vi.waitFor(async () => expect(await tenant.stream()).toEqual(isGoingOn), 10_000);
    await tenant.writer.pause();
    await tenant.untilPublished(tenant.writer.count);
    const { topic: current, events, firstSeq } = await tenant.expectWhole(await firstIn(tenant));
    expect(current).toBe(topic);
    const published = tenant.writer.count - events.length;
    expect(published).toBeGreaterThanOrEqual(Number(lost.lastSeq));
    expect(firstSeq).toBeGreaterThan(BigInt(published));
  }

  /** Completed batches of the lost topic are in the index still: what they held is gone with it, and nothing else. */
  async function firstIn(tenant: KafkaTenant): Promise<number> {
    const { stream, firstSeq } = await tenant.topic();
    const [row] = await database.sql<{ published: bigint }[]>`
      select coalesce(sum(count), 0) as published from plumbline.batch
      where stream = ${stream} and first_seq < ${firstSeq}`;
    return Number(row?.published);
  }

  /** Brokers take some time to heed a new limit: until then they take what is above it. */
  async function writeLargeUntilHeld(tenant: KafkaTenant, stream: bigint): Promise<string> {
    return vi.waitFor(
      async () => {
        const uid = await tenant.writeLarge(5_000);
        await vi.waitFor(async () => {
          const [row] = await database.sql<{ reason: string }[]>`
            select reason from plumbline.quarantine where stream = ${stream}`;
          expect(row?.reason).toMatch(/takes no record of this size/);
        }, 1_000);
        return uid;
      },
      { timeout: 10_000, interval: 50 },
    );
  }

  async function recreate(topic: string): Promise<void> {
    await admin.deleteTopics({ topics: [topic] });
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: false });
    await vi.waitFor(() => admin.fetchTopicMetadata({ topics: [topic] }), 10_000);
  }

  async function produce(topic: string, count: number): Promise<void> {
    const producer = kafkaClient(settingsFor(brokers), silentLogger).producer({ allowAutoTopicCreation: false });
    await producer.connect();
    await producer.send({ topic, messages: Array.from({ length: count }, () => ({ value: 'a stranger' })) });
    await producer.disconnect();
  }

  async function limit(topic: string, maxMessageBytes: number): Promise<void> {
    const configEntries = [{ name: 'max.message.bytes', value: String(maxMessageBytes) }];
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: topic, configEntries }] });
  }

  async function rowOf(topic: string): Promise<Record<string, unknown>> {
    const [row] = await database.sql`select * from plumbline.topic where name = ${topic}`;
    return row ?? {};
  }

  function of(tenant: string): KafkaTenant {
    const found = tenants.get(tenant);
    if (!found) throw new Error(`there is no tenant ${tenant}`);
    return found;
  }
});
