import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { readOutboxState } from '#adapters/postgres/outbox-state.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import type { Kafka } from '#infra/kafka/kafka-server.ts';
import { type KafkaTenant, startKafkaTenant } from '#test/fault/kafka-tenants.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';
import { type RunningPublisher, runPublisher } from '#test/support/running-publisher.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

const TENANTS = ['acme', 'globex', 'initech'];
const AWAY_MS = Number(process.env['PLUMBLINE_TEST_AWAY_MS'] ?? 20_000);
/** An append is given up after 15 s; then comes a pause of 2 s at most. */
const RECOVERED_WITHIN_MS = 20_000;
/** Writers do not notice. */
const SLOWEST_WRITE_MS = 2_000;
const PATIENCE_MS = 120_000;

describeKafka('publishing into Kafka goes on by itself, with nothing lost,', () => {
  let kafka: Kafka;
  let proxy: TcpProxy;
  let database: PreparedDatabase;
  let publisher: RunningPublisher;
  let tenants: readonly KafkaTenant[] = [];
  let treat: (bytes: Buffer, toClient: (bytes: Buffer) => void) => void = passOn;
  let lost = 0;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    proxy = await startTcpProxy({
      host: '127.0.0.1',
      port,
      answers: (toClient) => (bytes) => treat(bytes, toClient),
    });
    kafka = await startTestKafka({ port, advertised: [`127.0.0.1:${proxy.port}`] });
    database = await prepareKafkaDatabase(TENANTS, kafka.brokers);
    publisher = runPublisher(database.url, kafka.brokers);
    tenants = TENANTS.map((tenant) =>
      startKafkaTenant({ database, brokers: kafka.internalBrokers, tenant, pauseMs: 20 }),
    );
    await untilAllPublished();
  }, PATIENCE_MS);
  afterAll(async () => {
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await publisher?.stop();
    await database?.close();
    await proxy?.stop();
    await kafka?.stop();
  });

  test('when answers to appends are lost', async () => {
    await during('answers lost', async () => {
      const before = lost;
      let answers = 0;
      treat = (bytes, toClient) => {
        if (!isAppendAnswer(bytes) || (answers += 1) % 3 > 0) return toClient(bytes);
        lost += 1;
        proxy.cut();
      };
      await vi.waitFor(() => expect(lost - before).toBeGreaterThan(15), 20_000);
      treat = passOn;
    });
  });

  test('when an answer never comes', async () => {
    await during('an answer that never comes', async () => {
      const before = lost;
      treat = (bytes, toClient) => {
        if (!isAppendAnswer(bytes)) return toClient(bytes);
        treat = passOn;
        lost += 1;
      };
      await vi.waitFor(() => expect(lost).toBeGreaterThan(before));
    });
  });

  test('when its connections are cut', async () => {
    await during('cut', async () => {
      for (let cuts = 0; cuts < 10; cuts += 1) {
        proxy.cut();
        await pause(100);
      }
    });
  });

  test('when nothing comes through', async () => {
    await during('stalled', async () => {
      proxy.stall();
      await pause(8_000);
      await proxy.resume();
    });
  });

  test('when everything is slow', async () => {
    await during('slow', async () => {
      treat = (bytes, toClient) => void setTimeout(() => toClient(bytes), 300);
      await pause(2_500);
      treat = passOn;
    });
  });

  test('when the broker is away', async () => {
    const { attempts } = publisher;
    await during('away', async () => {
      await kafka.node(1).kill9();
      await pause(AWAY_MS);
      const written = writtenByNow();
      const { oldestSeconds, records } = await readOutboxState(database.sql);
      expect(oldestSeconds).toBeGreaterThan(AWAY_MS / 1000 - 1);
      await vi.waitFor(() => expect(writtenByNow()).toBeGreaterThan(written));
      const tried = publisher.attempts - attempts;
      console.log(`away: ${records} records wait, the oldest for ${oldestSeconds.toFixed(1)} s; ${tried} attempts`);
      // Each stream after 2 s again.
      expect(tried).toBeLessThan(TENANTS.length * (AWAY_MS / 1000));
      await kafka.node(1).start();
    });
  });

  async function during(what: string, fault: () => Promise<void>): Promise<void> {
    const { attempts } = publisher;
    await fault();
    const sinceMs = performance.now();
    await untilAllPublished();
    const tookMs = performance.now() - sinceMs;
    const tried = publisher.attempts - attempts;
    await Promise.all(tenants.map(({ writer }) => writer.pause()));
    await untilAllPublished();
    const logs = await Promise.all(tenants.map(({ expectWhole }) => expectWhole()));
    const events = logs.reduce((sum, log) => sum + log.events.length, 0);
    const repeated = logs.reduce((sum, log) => sum + log.repeated, 0);
    console.log(
      `${what}: published again after ${(tookMs / 1000).toFixed(1)} s and ${tried} attempts; ` +
        `${events} events so far, ${repeated} repeated`,
    );
    expect(tookMs).toBeLessThan(RECOVERED_WITHIN_MS);
    for (const { writer } of tenants) {
      expect(writer.slowestMs).toBeLessThan(SLOWEST_WRITE_MS);
      writer.resume();
    }
  }

  function writtenByNow(): number {
    return tenants.reduce((sum, { writer }) => sum + writer.count, 0);
  }

  /** What is written by now. */
  async function untilAllPublished(): Promise<void> {
    await Promise.all(tenants.map(({ writer, untilPublished }) => untilPublished(writer.count)));
  }
});

/** An answer to a produce request: behind size and correlation id comes the number of topics, then the name of the first. */
function isAppendAnswer(bytes: Buffer): boolean {
  return bytes.length > 20 && bytes.readInt32BE(8) > 0 && bytes.subarray(14, 19).toString() === 'test_';
}

function passOn(bytes: Buffer, toClient: (bytes: Buffer) => void): void {
  toClient(bytes);
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
