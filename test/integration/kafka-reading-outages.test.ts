/** One broker behind a network that fails: what tails and reads make of it, and what they cost. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import type { KafkaEventLog } from '#adapters/kafka/event-log.ts';
import { type KafkaEventWriter, kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { ORIGIN, PositionExpired } from '#core/ports/event-log.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import { appendAll } from '#test/support/kafka-appends.ts';
import { numberedEvents, settingsFor } from '#test/support/kafka-events.ts';
import {
  type Following,
  follow,
  type IndexInHand,
  indexInHand,
  newTopic,
  openLog,
  pointAt,
  seqsFrom,
} from '#test/support/kafka-reader.ts';
import { deleteRecords } from '#test/support/kafka-retention.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { silentLogger } from '#test/support/silent-logger.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

const PATIENCE_MS = 120_000;
const ALL = { maxCount: 1_000_000, maxBytes: 1_000_000_000 };
const BROKER_SETTINGS = {
  // Whoever asks for a missing topic in the wrong way makes it.
  'auto.create.topics.enable': 'true',
};

describeKafka('the reader of the event log, when the broker is in trouble', () => {
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;
  let proxy: TcpProxy;
  let writer: KafkaEventWriter;
  let index: IndexInHand;
  let log: KafkaEventLog;
  let streams = 0;
  const warnings: string[] = [];
  process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

  beforeAll(async () => {
    const [port] = await freePorts(1);
    proxy = await startTcpProxy({ host: '127.0.0.1', port: port! });
    kafka = await startTestKafka({ port: port!, advertised: [`127.0.0.1:${proxy.port}`], settings: BROKER_SETTINGS });
    // The writer has a way of its own: what is read is in question here.
    const settings = settingsFor(kafka.internalBrokers);
    writer = kafkaEventWriter({ settings, logger: silentLogger, compression: 'none' });
    index = indexInHand();
    log = openLog(kafka.brokers, index);
  }, PATIENCE_MS);
  afterAll(async () => {
    await Promise.all([log?.close(), writer?.close()]);
    await kafka?.stop();
    await proxy?.stop();
  });

  it(
    'has two connections for 60 tails, two for reads however many, and none for nobody',
    async () => {
      const own = openLog(kafka.brokers, index);
      const all = await Promise.all(Array.from({ length: 60 }, () => newStream(2)));
      const tails = all.map(({ stream }) => follow(own, stream));
      await Promise.all(tails.map((tail) => tail.until(2)));
      expect(proxy.connections).toBe(2);
      const reads = await Promise.all(all.map(({ stream }) => own.read(stream, ORIGIN, ALL)));
      expect(reads.every(({ events }) => events.length === 2)).toBe(true);
      expect(proxy.connections).toBe(4);
      await own.close();
      await expect.poll(() => proxy.connections).toBe(0);

      const idle = openLog(kafka.brokers, index);
      const last = follow(idle, all[0]!.stream);
      await last.until(2);
      last.stop();
      await expect.poll(() => proxy.connections, { timeout: 20_000 }).toBe(0);
      await idle.close();
    },
    PATIENCE_MS,
  );

  it(
    'keeps the others going when a topic is deleted under its tail, and does not make it anew',
    async () => {
      const [doomed, ...others] = await Promise.all(Array.from({ length: 10 }, () => newStream(1)));
      const [doomedTail, ...tails] = [doomed!, ...others].map(({ stream }) => follow(log, stream));
      await Promise.all([doomedTail!, ...tails].map((tail) => tail.until(1)));
      const appending = Promise.all(others.map(({ topic, stream }) => append(topic, stream, 2, 300)));
      const admin = kafkaTopicAdmin({ settings: settingsFor(kafka.internalBrokers), logger: silentLogger });
      await admin.remove(doomed!.topic);
      await appending;
      await Promise.all(tails.map((tail) => tail.until(300)));
      for (const tail of tails) expect(tail.seqs).toEqual(seqsFrom(1, 300));
      expect(Math.max(...tails.map(longestGapMs))).toBeLessThan(2_000);
      expect((await admin.extents([doomed!.topic])).get(doomed!.topic)).toBe('missing');
      stop(doomedTail!, ...tails);
    },
    PATIENCE_MS,
  );

  it(
    'tells a slow reader that retention was faster, while the others in its fetch lose nothing',
    async () => {
      const [slow, ...others] = await Promise.all(Array.from({ length: 6 }, () => newStream(1)));
      const lifetime = new AbortController();
      const slowTail = log.tail(slow!.stream, ORIGIN, lifetime.signal)[Symbol.asyncIterator]();
      expect((await slowTail.next()).value).toHaveLength(1);
      const tails = others.map(({ stream }) => follow(log, stream));
      await append(slow!.topic, slow!.stream, 2, 10);
      await deleteRecords(kafka.internalBrokers, slow!.topic, 5n);
      const appending = Promise.all(others.map(({ topic, stream }) => append(topic, stream, 2, 200)));
      const refusal = await slowTail.next().catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(PositionExpired);
      expect(refusal).toMatchObject({ stream: slow!.stream, earliest: pointAt(5) });
      await appending;
      await Promise.all(tails.map((tail) => tail.until(200)));
      for (const tail of tails) expect(tail.seqs).toEqual(seqsFrom(1, 200));
      expect(index.advances.some(({ topic }) => topic !== slow!.topic)).toBe(false);
      lifetime.abort();
      stop(...tails);
    },
    PATIENCE_MS,
  );

  it(
    'tails of one stream at different places all get everything, once and in order',
    async () => {
      const { stream, topic } = await newStream(500);
      const tails = [0, 1, 250, 499, 500, 500].map((seq) => follow(log, stream, seq === 0 ? ORIGIN : pointAt(seq)));
      await append(topic, stream, 501, 700);
      await Promise.all(tails.map((tail, nth) => tail.until([700, 699, 450, 201, 200, 200][nth]!)));
      expect(tails.map(({ seqs }) => seqs)).toEqual([1, 2, 251, 500, 501, 501].map((first) => seqsFrom(first, 700)));
      stop(...tails);
    },
    PATIENCE_MS,
  );

  it(
    'loses nothing when its connections break, again and again',
    async () => {
      const { stream, topic } = await newStream(1);
      const tail = follow(log, stream);
      for (let round = 0; round < 8; round += 1) {
        await append(topic, stream, round * 20 + 2, round * 20 + 21);
        proxy.cut();
      }
      await tail.until(161);
      expect(tail.seqs).toEqual(seqsFrom(1, 161));
      stop(tail);
    },
    PATIENCE_MS,
  );

  it(
    'leaves connections that lead nowhere: within 7 s events flow again',
    async () => {
      const { stream, topic } = await newStream(1);
      const tail = follow(log, stream);
      await tail.until(1);
      proxy.abandon();
      const abandonedAtMs = performance.now();
      await append(topic, stream, 2, 2);
      await tail.until(2, 20_000);
      const tookMs = performance.now() - abandonedAtMs;
      console.info(`after connections that led nowhere: the next event after ${Math.round(tookMs)} ms`);
      expect(tookMs).toBeLessThan(7_000);
      expect((await log.read(stream, ORIGIN, ALL)).events).toHaveLength(2);
      stop(tail);
    },
    PATIENCE_MS,
  );

  it(
    'while no broker can be reached, tails wait, reads end within 6 s, and ranges are what the index knows',
    async () => {
      const { stream, topic } = await newStream(3);
      const tail = follow(log, stream);
      await tail.until(3);
      for (const [how, mend] of [
        [() => proxy.refuse(), 6_000],
        [() => proxy.stall(), 10_000],
      ] as const) {
        await how();
        const late = follow(log, stream, pointAt(1));
        const [read, ranges, again] = await Promise.all([
          timed(() => log.read(stream, ORIGIN, ALL)),
          timed(() => log.ranges([stream])),
          timed(async () => {
            await log.ranges([stream]);
            await log.ranges([stream]);
          }),
        ]);
        expect(read.error).toMatchObject({ reason: 'ServiceUnavailable' });
        expect(read.tookMs).toBeLessThan(mend);
        expect(ranges.value?.get(stream)?.start).toEqual(ORIGIN);
        expect(Math.max(ranges.tookMs, again.tookMs)).toBeLessThan(3_000);
        expect(tail.refusal).toBeUndefined();
        const before = tail.events.length;
        await append(topic, stream, before + 1, before + 2);
        await proxy.resume();
        const backAtMs = performance.now();
        await Promise.all([tail.until(before + 2), late.until(before + 1)]);
        console.info(`after the way back was open, events after ${Math.round(performance.now() - backAtMs)} ms`);
        expect(performance.now() - backAtMs).toBeLessThan(8_000);
        expect(tail.seqs).toEqual(seqsFrom(1, before + 2));
        expect(late.seqs).toEqual(seqsFrom(2, before + 2));
        expect((await log.read(stream, ORIGIN, ALL)).events).toHaveLength(before + 2);
        stop(late);
      }
      stop(tail);
    },
    PATIENCE_MS,
  );

  it(
    'loses nothing when the broker is killed under load and comes back',
    async () => {
      const all = await Promise.all(Array.from({ length: 3 }, () => newStream(1)));
      const tails = all.map(({ stream }) => follow(log, stream));
      const appending = Promise.all(all.map(({ topic, stream }) => append(topic, stream, 2, 1_000)));
      await Promise.all(tails.map((tail) => tail.until(100)));
      await kafka.node(1).kill9();
      await kafka.node(1).start();
      await appending;
      await Promise.all(tails.map((tail) => tail.until(1_000)));
      for (const tail of tails) expect(tail.seqs).toEqual(seqsFrom(1, 1_000));
      stop(...tails);
    },
    PATIENCE_MS,
  );

  it('leaves nothing behind that Node would warn of', () => {
    expect(warnings).toEqual([]);
  });

  async function newStream(events: number): Promise<{ stream: bigint; topic: string }> {
    const topic = await newTopic(kafka.internalBrokers);
    const stream = BigInt((streams += 1));
    index.place(stream, topic);
    await append(topic, stream, 1, events);
    return { stream, topic };
  }

  async function append(topic: string, stream: bigint, first: number, last: number): Promise<void> {
    await appendAll(writer, topic, numberedEvents(Number(stream), last - first + 1, { firstSeq: first }));
  }
});

function longestGapMs({ arrivedAtMs }: Following): number {
  return Math.max(...arrivedAtMs.slice(1).map((atMs, nth) => atMs - arrivedAtMs[nth]!));
}

function stop(...tails: readonly Following[]): void {
  for (const tail of tails) tail.stop();
}

interface Timed<T> {
  readonly value?: T;
  readonly error?: unknown;
  readonly tookMs: number;
}

async function timed<T>(call: () => Promise<T>): Promise<Timed<T>> {
  const startedAtMs = performance.now();
  try {
    const value = await call();
    return { value, tookMs: performance.now() - startedAtMs };
  } catch (error) {
    return { error, tookMs: performance.now() - startedAtMs };
  }
}
