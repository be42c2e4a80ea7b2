import { randomUUID } from 'node:crypto';

import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { kafkaClient, type KafkaSettings } from '#adapters/kafka/client/client.ts';
import { type KafkaEventWriter, kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { RecordTooLarge, TopicLost } from '#core/ports/event-writer.ts';
import { StatusError } from '#core/status-error.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { numberedEvents, readTopic, settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

describeKafka('the writer of the event log in Kafka', () => {
  let settings: KafkaSettings;
  let admin: Admin;
  let writer: KafkaEventWriter;

  beforeAll(async () => {
    settings = settingsFor(await kafkaBrokers());
    admin = kafkaClient(settings, silentLogger).admin();
    await admin.connect();
    writer = newWriter();
  });
  afterAll(async () => {
    await Promise.all([writer?.close(), admin?.disconnect()]);
  });

  it('says where the events lie, and there they lie', async () => {
    const topic = await newTopic();
    const events = numberedEvents(7, 5);
    expect(await writer.append({ topic, lastPosition: undefined, events: events.slice(0, 2) })).toEqual([
      { firstPosition: 0n, count: 2 },
    ]);
    expect(await writer.append({ topic, lastPosition: 1n, events: events.slice(2) })).toEqual([
      { firstPosition: 2n, count: 3 },
    ]);
    const records = await readTopic(settings.brokers, topic);
    expect(records.map(({ offset, id, stream }) => ({ offset, id, stream }))).toEqual(
      events.map(({ id }, index) => ({ offset: BigInt(index), id, stream: '7' })),
    );
    expect(records.map(({ value }) => value)).toEqual(events.map(({ object }) => object));
    expect(records.map(({ key }) => key)).toEqual(events.map(({ subject }) => subject.uid));
  });

  it('writes a skipped event without a value', async () => {
    const topic = await newTopic();
    const [event] = numberedEvents(1, 1);
    await writer.append({ topic, lastPosition: undefined, events: [{ ...event!, type: 'SKIPPED' }] });
    const [record] = await readTopic(settings.brokers, topic);
    expect(record?.value).toBeUndefined();
    expect(record?.headers['ce_type']?.toString()).toBe('dev.plumbline.skipped');
  });

  it('compresses when told to, and any consumer reads it', async () => {
    const topic = await newTopic({ 'max.message.bytes': '20000' });
    const append = { topic, lastPosition: undefined, events: numberedEvents(1, 3, { size: 100_000 }) };
    await expect(writer.append(append)).rejects.toBeInstanceOf(RecordTooLarge);
    const zipping = kafkaEventWriter({ settings, logger: silentLogger, compression: 'gzip' });
    await zipping.append(append);
    await zipping.close();
    const values = (await readTopic(settings.brokers, topic)).map(({ value }) => value);
    expect(values).toEqual(append.events.map(({ object }) => object));
  });

  it('lets appends to many topics share their calls, and keeps the order in each', async () => {
    const topics = await Promise.all(Array.from({ length: 12 }, () => newTopic()));
    await Promise.all(topics.map((topic, index) => appendInBatches(topic, index + 1)));
    for (const [index, topic] of topics.entries()) {
      expect((await readTopic(settings.brokers, topic)).map(({ id }) => id)).toEqual(
        numberedEvents(index + 1, 50).map(({ id }) => id),
      );
    }

    async function appendInBatches(topic: string, stream: number): Promise<void> {
      for (let first = 1; first <= 50; first += 10) {
        const lastPosition = first === 1 ? undefined : BigInt(first - 2);
        await writer.append({ topic, lastPosition, events: numberedEvents(stream, 10, { firstSeq: first }) });
      }
    }
  });

  it('writes 1,000 records of 1 KB to a topic with the brokers’ default limit of 1 MiB for a batch', async () => {
    const topic = await newTopic({});
    const events = numberedEvents(1, 1_000, { size: 1_000 });
    const runs = await writer.append({ topic, lastPosition: undefined, events });
    expect(runs).toEqual([{ firstPosition: 0n, count: 1_000 }]);
    expect(await readTopic(settings.brokers, topic)).toHaveLength(1_000);
  });

  it('writes more than fits into one call in several, in order', async () => {
    const topics = [await newTopic(), await newTopic()];
    const events = numberedEvents(1, 60, { size: 200_000 });
    await Promise.all(topics.map((topic) => writer.append({ topic, lastPosition: undefined, events })));
    for (const topic of topics) {
      expect((await readTopic(settings.brokers, topic)).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
    }
  });

  it('takes an object of 1 MiB', async () => {
    const topic = await newTopic();
    await writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 2, { size: 1_048_576 }) });
    expect(await readTopic(settings.brokers, topic)).toHaveLength(2);
  });

  it('says which record is too large, and its neighbours in the call are written once', async () => {
    const [crowded, neighbour] = [await newTopic({}), await newTopic({})];
    const events = numberedEvents(1, 100).with(37, numberedEvents(1, 1, { firstSeq: 38, size: 1_200_000 })[0]!);
    const [tooLarge, written] = await Promise.allSettled([
      writer.append({ topic: crowded, lastPosition: undefined, events }),
      writer.append({ topic: neighbour, lastPosition: undefined, events: numberedEvents(2, 5) }),
    ]);
    expect(tooLarge).toMatchObject({ status: 'rejected', reason: { name: 'RecordTooLarge', index: 37 } });
    expect(tooLarge.status === 'rejected' && tooLarge.reason).toBeInstanceOf(RecordTooLarge);
    expect(written).toMatchObject({ status: 'fulfilled' });
    const ids = (await readTopic(settings.brokers, neighbour)).map(({ id }) => id);
    expect(new Set(ids)).toEqual(new Set(numberedEvents(2, 5).map(({ id }) => id)));

    // Without it, all goes on as if nothing had been.
    await writer.append({ topic: crowded, lastPosition: undefined, events: events.toSpliced(37, 1) });
  });

  it('says that a topic is missing, and its neighbours in the call do not wait', async () => {
    const neighbour = await newTopic();
    const topic = `missing-${randomUUID()}`;
    const missing = writer
      .append({ topic, lastPosition: undefined, events: numberedEvents(1, 1) })
      .catch((error: unknown) => error);
    await writer.append({ topic: neighbour, lastPosition: undefined, events: numberedEvents(2, 1) });
    // The other one is still being looked for.
    expect(await Promise.race([missing, Promise.resolve('open')])).toBe('open');
    expect(await missing).toMatchObject({ name: 'TopicLost', how: 'missing' });
  });

  it('goes on after a topic that it wrote to was deleted', async () => {
    const [doomed, other] = [await newTopic(), await newTopic()];
    await writer.append({ topic: doomed, lastPosition: undefined, events: numberedEvents(1, 1) });
    await admin.deleteTopics({ topics: [doomed] });
    const fresh = await newTopic();
    const lost = writer.append({ topic: doomed, lastPosition: 0n, events: numberedEvents(1, 1, { firstSeq: 2 }) });
    await expect(lost).rejects.toBeInstanceOf(TopicLost);
    for (const topic of [other, fresh]) {
      expect(await writer.append({ topic, lastPosition: undefined, events: numberedEvents(2, 1) })).toHaveLength(1);
    }
  });

  it('finds that a topic was made anew by the offset that it gives', async () => {
    const topic = await newTopic();
    await writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 10) });
    await admin.deleteTopics({ topics: [topic] });
    await makeTopic(topic);
    const append = { topic, lastPosition: 9n, events: numberedEvents(1, 3, { firstSeq: 11 }) };
    await expect(writer.append(append)).rejects.toMatchObject({ name: 'TopicLost', how: 'replaced' });
  });

  it('changes its producer after a day, before its numbers run out or the brokers forget it', async () => {
    const topic = await newTopic();
    const steady = newWriter();
    const append = (seq: number) =>
      steady.append({ topic, lastPosition: undefined, events: numberedEvents(1, 1, { firstSeq: seq }) });
    await append(1);
    await append(2);
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 24 * 3_600_000);
    await append(3);
    vi.restoreAllMocks();
    await steady.close();
    const [first, second, third] = (await readTopic(settings.brokers, topic)).map(({ producerId }) => producerId);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it('tells an event that cannot be written to its own caller', async () => {
    const topic = await newTopic();
    const [event] = numberedEvents(1, 1);
    const broken = { ...event!, time: new Date(Number.NaN) };
    const results = await Promise.allSettled([
      writer.append({ topic: await newTopic(), lastPosition: undefined, events: [broken] }),
      writer.append({ topic, lastPosition: undefined, events: [event!] }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });

  it('takes no append after it was closed, and lets those that were under way arrive', async () => {
    const closing = newWriter();
    const topic = await newTopic();
    await closing.append({ topic, lastPosition: undefined, events: numberedEvents(1, 1) });
    const underWay = closing.append({ topic, lastPosition: 0n, events: numberedEvents(1, 500, { firstSeq: 2 }) });
    // The call is sent in the next turn.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    const closed = closing.close();
    await expect(closing.append({ topic, lastPosition: 0n, events: [] })).rejects.toBeInstanceOf(StatusError);
    expect(await underWay).toEqual([{ firstPosition: 1n, count: 500 }]);
    await closed;
  });

  function newWriter(): KafkaEventWriter {
    return kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
  }

  async function newTopic(
    config: Readonly<Record<string, string>> = { 'max.message.bytes': '8388608' },
  ): Promise<string> {
    const topic = `writer-${randomUUID()}`;
    await makeTopic(topic, config);
    return topic;
  }

  async function makeTopic(topic: string, config: Readonly<Record<string, string>> = {}): Promise<void> {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions: 1, configEntries }] });
    await expect
      .poll(() => admin.fetchTopicMetadata({ topics: [topic] }).catch(() => undefined), { timeout: 10_000 })
      .toMatchObject({ topics: [{ partitions: [{ partitionErrorCode: 0 }] }] });
  }
});
