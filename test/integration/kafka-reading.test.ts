/** What a reader makes of what lies in a topic: of all places, of what is no event, and of topics that come and go. */

import { randomUUID } from 'node:crypto';
import {
  CompressionTypes,
  ConfigResourceTypes,
  Kafka,
  logLevel,
  type Message,
  Partitioners,
  type Producer,
  type ProducerConfig,
} from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import type { KafkaEventLog } from '#adapters/kafka/event-log.ts';
import { toRecord } from '#adapters/kafka/records.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import type { StreamEvent } from '#core/event.ts';
import { ORIGIN, pointOf, PositionExpired } from '#core/ports/event-log.ts';
import type { Logger } from '#core/ports/logger.ts';
import { numberedEvents, settingsFor } from '#test/support/kafka-events.ts';
import {
  follow,
  type IndexInHand,
  indexInHand,
  newTopic as makeTopic,
  openLog,
  pointAt,
  seqsFrom,
} from '#test/support/kafka-reader.ts';
import { deleteRecords } from '#test/support/kafka-retention.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const ALL = { maxCount: 1_000_000, maxBytes: 1_000_000_000 };

describeKafka('the reader of the event log in Kafka', () => {
  let brokers: readonly string[];
  let index: IndexInHand;
  let log: KafkaEventLog;
  const warnings: string[] = [];
  let streams = 0n;

  beforeAll(async () => {
    brokers = await kafkaBrokers();
    index = indexInHand();
    const logger: Logger = { ...silentLogger, warn: (_, message) => void warnings.push(message) };
    log = openLog(brokers, index, logger);
  });
  afterAll(async () => {
    await log?.close();
  });

  it('reads from the start, the middle and the end, and refuses what retention has removed: exactly', async () => {
    const { stream, topic } = await newStream(10);
    for (const seq of [0, 1, 5, 9, 10]) expect(await readSeqs(stream, seq)).toEqual(seqsFrom(seq + 1, 10));
    await deleteRecords(brokers, topic, 4n);
    for (const seq of [4, 5, 9, 10]) expect(await readSeqs(stream, seq)).toEqual(seqsFrom(seq + 1, 10));
    const tails = [4, 9].map((seq) => follow(log, stream, pointAt(seq)));
    await Promise.all(tails.map((tail, nth) => tail.until([6, 1][nth]!)));
    expect(tails.map(({ seqs }) => seqs)).toEqual([seqsFrom(5, 10), [10]]);
    for (const after of [ORIGIN, pointAt(1), pointAt(3)]) {
      const tail = follow(log, stream, after);
      await tail.until(1);
      for (const refusal of [tail.refusal, await log.read(stream, after, ALL).catch((error: unknown) => error)]) {
        expect(refusal).toBeInstanceOf(PositionExpired);
        expect(refusal).toMatchObject({ stream, earliest: pointAt(4) });
      }
    }
    expect(index.advances).toContainEqual({ topic, position: 4n });
    for (const tail of tails) tail.stop();
  });

  it('waits behind the end: what is not there yet is neither refused nor made up', async () => {
    const { stream, topic } = await newStream(3);
    expect(await log.read(stream, pointAt(3), ALL)).toEqual({ events: [], more: false });
    const [atEnd, ahead] = [follow(log, stream, pointAt(3)), follow(log, stream, pointAt(5))];
    await write(topic, numberedEvents(Number(stream), 4, { firstSeq: 4 }));
    await Promise.all([atEnd.until(4), ahead.until(2)]);
    expect([atEnd.seqs, ahead.seqs]).toEqual([
      [4, 5, 6, 7],
      [6, 7],
    ]);
    for (const tail of [atEnd, ahead]) tail.stop();
  });

  it('a tail that begins now has what is written next, and nothing that was; and soon, although others wait', async () => {
    const waiting = follow(log, (await newStream(0)).stream);
    const { stream, topic } = await newStream(1);
    const producer = newProducer();
    await producer.connect();
    const latenciesMs: number[] = [];
    for (let seq = 1; seq < 30; seq += 1) {
      const tail = follow(log, stream, pointAt(seq));
      // By now it may have joined the others, who have long been waiting.
      await new Promise((resolve) => setTimeout(resolve, seq * 10));
      await producer.send({ topic, messages: numberedEvents(Number(stream), 1, { firstSeq: seq + 1 }).map(toRecord) });
      const writtenAtMs = performance.now();
      await tail.until(1);
      expect(tail.seqs).toEqual([seq + 1]);
      latenciesMs.push(tail.arrivedAtMs[0]! - writtenAtMs);
      tail.stop();
    }
    await producer.disconnect();
    // A long poll of the others takes up to 500 ms.
    expect(latenciesMs.toSorted((a, b) => a - b)[25]).toBeLessThan(100);
    waiting.stop();
  });

  it('drops repetitions, also whole runs of them, and goes on from any of their positions', async () => {
    const { stream, topic } = await newStream(0);
    const events = numberedEvents(Number(stream), 9);
    await write(topic, events.slice(0, 4));
    for (let again = 0; again < 3; again += 1) await write(topic, events.slice(1, 4));
    await write(topic, events.slice(2, 7));
    await write(topic, events.slice(4, 9));
    expect(await readSeqs(stream, 0)).toEqual(seqsFrom(1, 9));
    expect((await log.read(stream, pointAt(4, 3), { maxCount: 1, maxBytes: 1 })).events[0]).toMatchObject({ seq: 5n });
    // Seq 4 lies at 3, 6, 9, 12 and 14.
    for (const position of [3, 6, 9, 12, 14]) {
      const { events: rest } = await log.read(stream, pointAt(4, position), ALL);
      expect(rest.map(({ seq }) => Number(seq))).toEqual(seqsFrom(5, 9));
    }
    const tail = follow(log, stream);
    await tail.until(9);
    expect(tail.seqs).toEqual(seqsFrom(1, 9));
    expect(tail.events.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
    tail.stop();
  });

  it('goes on behind repetitions that retention has cut into', async () => {
    const { stream, topic } = await newStream(4);
    index.place(stream, topic, { seqAt: (position) => (position > 3n ? 5n : position + 1n) });
    await write(topic, numberedEvents(Number(stream), 3, { firstSeq: 2 }));
    await write(topic, numberedEvents(Number(stream), 2, { firstSeq: 5 }));
    // Of seq 1 to 4 nothing is left but a repetition of the last: who has them has missed nothing.
    await deleteRecords(brokers, topic, 6n);
    expect(await readSeqs(stream, 4)).toEqual([5, 6]);
    const tail = follow(log, stream, pointAt(4));
    await tail.until(2);
    expect(tail.seqs).toEqual([5, 6]);
    tail.stop();
  });

  it('passes over what is no event of the stream, and says so once', async () => {
    const { stream, topic } = await newStream(2);
    const said = warnings.length;
    await writeRaw(topic, [
      { value: 'a stranger' },
      { value: null },
      { value: '{}', headers: { ce_stream: '999', ce_seq: '3' } },
      { value: 'x', headers: { ce_stream: String(stream), ce_seq: '3' } },
      { value: '{}', headers: { ce_stream: [String(stream), String(stream)], ce_seq: '3' } },
    ]);
    await write(topic, numberedEvents(Number(stream), 2, { firstSeq: 3 }));
    const tail = follow(log, stream);
    await tail.until(4);
    expect(tail.seqs).toEqual([1, 2, 3, 4]);
    expect(await readSeqs(stream, 0)).toEqual([1, 2, 3, 4]);
    expect(warnings.slice(said)).toEqual([expect.stringContaining(`no event of stream ${stream}`)]);
    tail.stop();
  });

  it('gives what lies behind a hole as it is: who reads finds the number missing', async () => {
    const { stream, topic } = await newStream(2);
    await write(topic, numberedEvents(Number(stream), 2, { firstSeq: 5 }));
    expect(await readSeqs(stream, 0)).toEqual([1, 2, 5, 6]);
  });

  it('passes over the marks of transactions, and waits for none that is open', async () => {
    const { stream, topic } = await newStream(1);
    const stranger = newProducer({ transactionalId: randomUUID(), maxInFlightRequests: 1, idempotent: true });
    await stranger.connect();
    for (const end of ['commit', 'abort', undefined] as const) {
      const transaction = await stranger.transaction();
      await transaction.send({ topic, messages: [{ value: 'in a transaction' }] });
      if (end) await transaction[end]();
    }
    await write(topic, numberedEvents(Number(stream), 1, { firstSeq: 2 }));
    const tail = follow(log, stream);
    await tail.until(2);
    expect(tail.seqs).toEqual([1, 2]);
    expect(await readSeqs(stream, 1)).toEqual([2]);
    tail.stop();
    await stranger.disconnect();
  });

  it('reads what producer or broker compressed, by gzip and by zstd; of lz4 it says what to do', async () => {
    for (const compression of ['gzip', 'zstd', 'lz4']) {
      const { stream, topic } = await newStream(0);
      await setConfig(topic, 'compression.type', compression);
      const said = warnings.length;
      const messages = numberedEvents(Number(stream), 50, { size: 2_000 }).map(toRecord);
      await writeRaw(topic, messages, CompressionTypes.GZIP);
      const isReadable = compression !== 'lz4';
      expect(await readSeqs(stream, 0)).toEqual(isReadable ? seqsFrom(1, 50) : []);
      expect(warnings.slice(said).some((text) => text.includes('compression.type'))).toBe(!isReadable);
    }
  });

  it('ends a read at a byte limit in the middle of a batch, and reads the rest of it', async () => {
    const { stream, topic } = await newStream(0);
    await write(topic, numberedEvents(Number(stream), 200, { size: 10_000 }));
    const seqs: number[] = [];
    for (let after = ORIGIN, more = true; more;) {
      const read = await log.read(stream, after, { maxCount: 7, maxBytes: 50_000 });
      expect(read.events.length).toBeLessThanOrEqual(4);
      seqs.push(...read.events.map(({ seq }) => Number(seq)));
      ({ more } = read);
      after = read.events.at(-1) ?? after;
    }
    expect(seqs).toEqual(seqsFrom(1, 200));
  });

  it('reads an object of 4 MiB, and what lies behind it', async () => {
    const { stream, topic } = await newStream(1);
    await write(topic, numberedEvents(Number(stream), 1, { firstSeq: 2, size: 4 * 1024 * 1024 }));
    await write(topic, numberedEvents(Number(stream), 1, { firstSeq: 3 }));
    const tail = follow(log, stream);
    await tail.until(3);
    expect(tail.seqs).toEqual([1, 2, 3]);
    expect(await readSeqs(stream, 0)).toEqual([1, 2, 3]);
    tail.stop();
  });

  it('reads 160 MB that lie behind in bounded memory, by a tail and by reads', async () => {
    const { stream, topic } = await newStream(0);
    const count = 20_000;
    const writer = kafkaEventWriter({ settings: settingsFor(brokers), logger: silentLogger, compression: 'none' });
    for (let firstSeq = 1; firstSeq <= count; firstSeq += 500) {
      const events = numberedEvents(Number(stream), 500, { firstSeq, size: 8_000 });
      await writer.append({ topic, lastPosition: BigInt(firstSeq) - 2n, events });
    }
    await writer.close();
    const held = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external;
    const before = held();
    let peak = 0;
    let last = 0n;
    const take = (events: readonly StreamEvent[]): void => {
      peak = Math.max(peak, held());
      for (const { seq } of events) expect(seq).toBe((last += 1n));
    };
    for await (const events of log.tail(stream, ORIGIN, new AbortController().signal)) {
      take(events);
      if (last === BigInt(count)) break;
    }
    last = 0n;
    for (let point = ORIGIN; last < BigInt(count);) {
      const { events } = await log.read(stream, point, { maxCount: 250, maxBytes: 256 * 1024 });
      take(events);
      point = pointOf(events.at(-1)!);
    }
    console.info(`160 MB behind were read with ${Math.round((peak - before) / 1e6)} MB more memory`);
    expect(peak - before).toBeLessThan(150e6);
  });

  it('goes on in the topic that replaces a lost one; who has not read all of the old one is refused', async () => {
    const { stream, topic } = await newStream(5);
    const atHead = follow(log, stream, pointAt(5));
    const behind = pointAt(4);
    await atHead.until(0);
    const replacement = await newTopic();
    await kafkaTopicAdmin({ settings: settingsFor(brokers), logger: silentLogger }).remove(topic);
    index.place(stream, replacement, { firstSeq: 6n });
    await write(replacement, numberedEvents(Number(stream), 3, { firstSeq: 6 }));
    await atHead.until(3);
    expect(atHead.seqs).toEqual([6, 7, 8]);
    expect((await log.read(stream, pointAt(5), ALL)).events).toHaveLength(3);
    const late = follow(log, stream, behind);
    await late.until(1);
    for (const refusal of [late.refusal, await log.read(stream, behind, ALL).catch((error: unknown) => error)]) {
      expect(refusal).toBeInstanceOf(PositionExpired);
      expect(refusal).toMatchObject({ earliest: { seq: 5n } });
    }
    atHead.stop();
  });

  it('waits for a topic that is not there yet, and never makes it', async () => {
    const topic = `reading-${randomUUID()}`;
    const stream = (streams += 1n);
    index.place(stream, topic);
    const tail = follow(log, stream);
    await expect(log.read(stream, ORIGIN, ALL)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
    const admin = kafkaTopicAdmin({ settings: settingsFor(brokers), logger: silentLogger });
    expect((await admin.extents([topic])).get(topic)).toBe('missing');
    await admin.ensure(topic, { retentionMs: 3_600_000, retentionBytes: undefined });
    await write(topic, numberedEvents(Number(stream), 2));
    await tail.until(2);
    expect(tail.seqs).toEqual([1, 2]);
    tail.stop();
  });

  async function newStream(events: number): Promise<{ stream: bigint; topic: string }> {
    const topic = await newTopic();
    const stream = (streams += 1n);
    index.place(stream, topic);
    if (events > 0) await write(topic, numberedEvents(Number(stream), events));
    return { stream, topic };
  }

  async function newTopic(): Promise<string> {
    return makeTopic(brokers);
  }

  async function readSeqs(stream: bigint, after: number): Promise<number[]> {
    const seqs: number[] = [];
    for (let point = after === 0 ? ORIGIN : pointAt(after); ;) {
      const { events, more } = await log.read(stream, point, ALL);
      seqs.push(...events.map(({ seq }) => Number(seq)));
      if (!more) return seqs;
      point = events.at(-1) ?? point;
    }
  }

  async function write(topic: string, events: ReturnType<typeof numberedEvents>): Promise<void> {
    await writeRaw(topic, events.map(toRecord));
  }

  /** With a producer of its own: one that has seen a deleted topic can write to none any more. */
  async function writeRaw(topic: string, messages: Message[], compression = CompressionTypes.None): Promise<void> {
    const producer = newProducer();
    await producer.connect();
    await producer.send({ topic, messages, compression });
    await producer.disconnect();
  }

  function newProducer(config: ProducerConfig = {}): Producer {
    const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
    const createPartitioner = Partitioners.DefaultPartitioner;
    return kafka.producer({ allowAutoTopicCreation: false, createPartitioner, ...config });
  }

  async function setConfig(topic: string, name: string, value: string): Promise<void> {
    const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const configEntries = [
      { name, value },
      { name: 'max.message.bytes', value: '8388608' },
    ];
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    });
    await admin.disconnect();
  }
});
