import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { kafkaEventLog, type KafkaEventLog } from '#adapters/kafka/event-log.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { take } from '#test/http/client/world.ts';
import { expectFailure, watchUrl } from '#test/http/watch/world.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { kafkaPublishing, type KafkaPublishing, prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';
import { withSteps } from '#test/support/publisher-steps.ts';
import { silentLogger } from '#test/support/silent-logger.ts';
import { openSse, type SseClient, SseRefused } from '#test/support/sse-client.ts';
import { startWatchServer, type WatchServer } from '#test/support/watch-server.ts';

/** Its events are in Kafka, and PostgreSQL does not know it yet. */
describeKafka('a publisher that is held between its append and the completion', () => {
  const tenant = 'acme';
  let database: PreparedDatabase;
  let log: KafkaEventLog;
  let publishing: KafkaPublishing;
  let server: WatchServer;
  let token: string;
  let held: { readonly reached: PromiseWithResolvers<void>; readonly released: PromiseWithResolvers<void> } | undefined;

  beforeAll(async () => {
    const brokers = await kafkaBrokers();
    database = await prepareKafkaDatabase([tenant], brokers);
    const { sql } = database;
    log = kafkaEventLog({ settings: settingsFor(brokers), logger: silentLogger, index: postgresLogIndex(sql) });
    publishing = kafkaPublishing({
      sql,
      brokers,
      around: (ports) =>
        withSteps(ports, async (step) => {
          if (step !== 'append answered' || !held) return;
          held.reached.resolve();
          await held.released.promise;
        }),
    });
    server = await startWatchServer(sql, { log });
    token = await server.token([tenant]);
    await publishOnce({ outbox: publishing.outbox });
  });

  afterAll(async () => {
    held?.released.resolve();
    await server?.stop();
    await publishing?.close();
    await log?.close();
    await database?.close();
  });

  test('lets watchers see its events; who comes back with one of their cursors waits, is told 504 when it takes long, and goes on when it is done', async () => {
    const live = await watch();
    held = { reached: Promise.withResolvers(), released: Promise.withResolvers() };
    await write('one', 'two');
    const publishingNow = publishOnce({ outbox: publishing.outbox });
    await held.reached.promise;
    const { id: cursor = '' } = await live.waitFor(({ data }) => data.data?.metadata.name === 'two');

    const client = take({ url: server.baseUrl, token, tenants: [tenant], from: cursor });
    onTestFinished(() => client.stop());
    // Browsers come back only to what was answered 200, and with the id that they have.
    const [refused, inStream] = await Promise.all([
      watch({ from: cursor }).catch((error: unknown) => error),
      open({}, cursor),
    ]);
    expect(refused).toBeInstanceOf(SseRefused);
    const { status, headers, body } = refused as SseRefused;
    expect([status, headers.get('retry-after')]).toEqual([504, '1']);
    expectFailure(body, 504, 'Timeout', /does not reach as far as this cursor yet/);
    const error = await inStream.next();
    expect([error.event, error.id]).toEqual(['ERROR', undefined]);
    expectFailure(error.data, 504, 'Timeout');
    expect([await inStream.ended, inStream.lastEventId]).toEqual([undefined, cursor]);

    await client.untilRetries(1);
    expect(client.retries[0]).toMatchObject({ code: 504, reason: 'Timeout', retryAfterMs: 1_000 });

    const waiting = watch({ from: cursor });
    held.released.resolve();
    await publishingNow;
    held = undefined;
    const resumed = await waiting;
    await write('three');
    await publishOnce({ outbox: publishing.outbox });
    expect((await resumed.next()).data.data.metadata.name).toBe('three');
    expect((await live.next()).data.data.metadata.name).toBe('three');
    await client.until((item) => item.type === 'ADDED' && item.object.metadata.name === 'three');
    expect(client.changes.map(({ object }) => object.metadata.name)).toEqual(['three']);
    await Promise.all([live.close(), resumed.close()]);
  });

  function open(query: Readonly<Record<string, string>>, lastEventId?: string): Promise<SseClient> {
    const url = watchUrl(server.baseUrl, { tenants: tenant, ...query });
    return openSse(url, { token, ...(lastEventId !== undefined && { lastEventId }) });
  }

  async function watch(query: Readonly<Record<string, string>> = {}): Promise<SseClient> {
    const client = await open(query);
    expect((await client.next()).event).toBe('READY');
    return client;
  }

  async function write(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${tenant}, 'example.dev', 'Widget', ${name})`;
    }
  }
});
