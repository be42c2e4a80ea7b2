import { randomUUID } from 'node:crypto';

import { type Admin, ConfigResourceTypes, ConfigSource } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { kafkaClient, type KafkaSettings } from '#adapters/kafka/client/client.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { TopicAdmin, TopicSettings } from '#core/ports/topics.ts';
import { describeKafka, kafkaBrokers, startTestKafka } from '#test/support/kafka.ts';
import { numberedEvents, settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const HOUR: TopicSettings = { retentionMs: 3_600_000, retentionBytes: undefined };

describeKafka('the topics of the event log at the brokers', () => {
  let settings: KafkaSettings;
  let topics: TopicAdmin;
  let stranger: Admin;

  beforeAll(async () => {
    settings = settingsFor(await kafkaBrokers());
    topics = kafkaTopicAdmin({ settings, logger: silentLogger });
    stranger = kafkaClient(settings, silentLogger).admin();
    await stranger.connect();
  });
  afterAll(() => stranger?.disconnect());

  it('are made with one partition and the settings of their tenant', async () => {
    const name = newName();
    await topics.ensure(name, { retentionMs: 7_200_000, retentionBytes: 1_000_000 });
    expect(await configOf(name)).toEqual({
      'cleanup.policy': 'delete',
      'compression.type': 'producer',
      'max.message.bytes': '8388608',
      'retention.bytes': '1000000',
      'retention.ms': '7200000',
    });
    expect((await stranger.fetchTopicMetadata({ topics: [name] })).topics[0]?.partitions).toHaveLength(1);
  });

  it('can be written to as soon as they are made', async () => {
    const writer = kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
    const names = Array.from({ length: 10 }, newName);
    const runs = await Promise.all(
      names.map(async (topic) => {
        await topics.ensure(topic, HOUR);
        return writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 1) });
      }),
    );
    await writer.close();
    expect(runs.flat()).toEqual(names.map(() => ({ firstPosition: 0n, count: 1 })));
  });

  it('follow a change of their settings, and keep what an operator has set', async () => {
    const name = newName();
    await topics.ensure(name, { retentionMs: 7_200_000, retentionBytes: 1_000_000 });
    const own = { name: 'segment.ms', value: '600000' };
    const present = Object.entries(await configOf(name)).map(([key, value]) => ({ name: key, value }));
    await stranger.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries: [...present, own] }],
    });
    await topics.ensure(name, HOUR);
    await expect
      .poll(() => configOf(name))
      .toMatchObject({ 'retention.ms': '3600000', 'retention.bytes': '-1', 'segment.ms': '600000' });
    // As they should be: nothing to do.
    await topics.ensure(name, HOUR);
    expect(await configOf(name)).toMatchObject({ 'retention.ms': '3600000', 'segment.ms': '600000' });
  });

  it('are refused when they have more than one partition, with what to do', async () => {
    const name = newName();
    await stranger.createTopics({ topics: [{ topic: name, numPartitions: 3 }], waitForLeaders: false });
    await expect(topics.ensure(name, HOUR)).rejects.toMatchObject({
      reason: 'ServiceUnavailable',
      message: `topic ${name} has 3 partitions and must have 1: it is not of our making; remove it`,
    });
  });

  it('are refused in the brokers’ words', async () => {
    await expect(topics.ensure('no name', HOUR)).rejects.toThrow(
      /^topic no name: the Kafka brokers answer INVALID_TOPIC_EXCEPTION \(Topic name is invalid: 'no name' contains/,
    );
    await expect(topics.ensure(newName(), { ...HOUR, retentionMs: -7 })).rejects.toThrow(
      /INVALID_CONFIG.*retention\.ms/,
    );
  });

  it('are gone when they are removed, also when they were gone before', async () => {
    const name = newName();
    const identity = await topics.ensure(name, HOUR);
    await topics.remove(name);
    expect(await topics.extents([name])).toEqual(new Map([[name, 'missing']]));
    await topics.remove(name);
    const another = await topics.ensure(name, HOUR);
    expect(await topics.extents([name])).toEqual(new Map([[name, { start: 0n, end: 0n, identity: another }]]));
    // One that is made anew is told from the one before.
    expect(identity).toMatch(/^[0-9a-f]{32}$/);
    expect(another).not.toBe(identity);
  });

  it('tell where they begin and end', async () => {
    const name = newName();
    const identity = await topics.ensure(name, HOUR);
    const writer = kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
    await writer.append({ topic: name, lastPosition: undefined, events: numberedEvents(1, 12) });
    await writer.close();
    await deleteUpTo(name, '5');
    expect(await topics.extents([name])).toEqual(new Map([[name, { start: 5n, end: 12n, identity }]]));
  });

  it('tell it in one call, those that are there and those that are not', async () => {
    const names = Array.from({ length: 40 }, newName);
    await Promise.all(names.filter((_, index) => index % 2 === 0).map((name) => topics.ensure(name, HOUR)));
    const extents = await topics.extents(names);
    expect(names.map((name) => extents.get(name))).toEqual(
      names.map((_, index) => (index % 2 === 0 ? { start: 0n, end: 0n, identity: expect.any(String) } : 'missing')),
    );
    expect(await topics.extents([])).toEqual(new Map());
  });

  function newName(): string {
    return `admin-${randomUUID()}`;
  }

  /** What is set on the topic itself. */
  async function configOf(name: string): Promise<Record<string, string>> {
    const { resources } = await stranger.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name }],
    });
    const own = resources[0]!.configEntries.filter((entry) => entry.configSource === ConfigSource.TOPIC_CONFIG);
    return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]));
  }

  /** On a client of its own: it cannot be used after that. */
  async function deleteUpTo(topic: string, offset: string): Promise<void> {
    const admin = kafkaClient(settings, silentLogger).admin();
    await admin.connect();
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset }] });
    await admin.disconnect();
  }
});

describeKafka('the topics of the event log on brokers of another kind', () => {
  it('are not made by those who only ask for them, where brokers make topics by themselves', async () => {
    const kafka = await startTestKafka({ settings: { 'auto.create.topics.enable': 'true' } });
    try {
      const settings = settingsFor(kafka.brokers);
      const topics = kafkaTopicAdmin({ settings, logger: silentLogger });
      const writer = kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
      const append = { topic: 'nobodys', lastPosition: undefined, events: numberedEvents(1, 1) };
      await expect(writer.append(append)).rejects.toMatchObject({ name: 'TopicLost', how: 'missing' });
      // Nor does one that was written to come back after it was removed.
      await topics.ensure('removed', HOUR);
      await writer.append({ ...append, topic: 'removed' });
      await topics.remove('removed');
      await expect(writer.append({ ...append, topic: 'removed' })).rejects.toMatchObject({ how: 'missing' });
      await writer.close();
      expect(await topics.extents(['nobodys', 'removed'])).toEqual(
        new Map([
          ['nobodys', 'missing'],
          ['removed', 'missing'],
        ]),
      );
    } finally {
      await kafka.stop();
    }
  }, 120_000);

  it('are left out of the extents when they have no leader, and those of the others are told', async () => {
    const kafka = await startTestKafka({ nodes: 3 });
    try {
      const settings = settingsFor(kafka.brokers);
      const admin = kafkaClient(settings, silentLogger).admin();
      await admin.connect();
      await admin.createTopics({
        waitForLeaders: false,
        topics: [3, 1].map((replica) => ({
          topic: `only-on-${replica}`,
          numPartitions: -1,
          replicationFactor: -1,
          replicaAssignment: [{ partition: 0, replicas: [replica] }],
        })),
      });
      await admin.disconnect();
      const topics = kafkaTopicAdmin({ settings, logger: silentLogger });
      const names = ['only-on-1', 'only-on-3', 'nowhere'];
      const onOne = { start: 0n, end: 0n, identity: expect.any(String) };
      await expect
        .poll(() => topics.extents(names))
        .toEqual(
          new Map<string, unknown>([
            ['only-on-1', onOne],
            ['only-on-3', onOne],
            ['nowhere', 'missing'],
          ]),
        );
      await kafka.node(3).kill9();
      await expect
        .poll(async () => [...(await topics.extents(names)).keys()].toSorted(), { timeout: 30_000 })
        .toEqual(['nowhere', 'only-on-1']);
      // Neither do they keep others from being made.
      await topics.ensure('made-meanwhile', HOUR);
      await kafka.node(1).kill9();
      await kafka.node(2).kill9();
      await expect(topics.extents(names)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
    } finally {
      await kafka.stop();
    }
  }, 120_000);
});
