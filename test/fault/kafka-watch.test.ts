import { Kafka as KafkaClient, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Kafka } from '#infra/kafka/kafka-server.ts';
import { expectDelivered } from '#test/fault/delivery.ts';
import { untilReadiness } from '#test/fault/expectations.ts';
import { type ResumingWatcher, startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { clientOf } from '#test/http/client.ts';
import { deleteRecords } from '#test/support/kafka-retention.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const ROUNDS = 4;
const AWAY_MS = 32_000;

describeKafka('watching over a log in Kafka', () => {
  let kafka: Kafka;
  let database: TestDatabase;
  let instance: LocalInstance;
  let watchers: ResumingWatcher[] = [];
  const baseUrl = (): string => instance.baseUrl;

  beforeAll(async () => {
    [kafka, database] = await Promise.all([startTestKafka(), createTestDatabase()]);
    instance = await startOnKafka();
  }, 120_000);

  afterEach(async () => {
    await Promise.all(watchers.map((watcher) => watcher.stop()));
    watchers = [];
  });

  afterAll(async () => {
    await instance?.stop();
    await database?.drop();
    await kafka?.stop();
  });

  test(
    `over ${ROUNDS} times kill -9 of the broker under load, every answered write comes once and in order, on the same connection`,
    { timeout: 180_000 },
    async () => {
      const { tenant, token } = await makeTenant(instance);
      const [one, all] = [watch(token, tenant), watch(token)];
      await Promise.all([one.ready, all.ready]);
      const writers = startWriters({ baseUrl, token, tenant, pauseMs: 5 });
      const broker = kafka.node(1);
      for (let round = 1; round <= ROUNDS; round += 1) {
        await writers.more(150);
        await broker.kill9();
        // Writes go on without it.
        await writers.more(150);
        await broker.start();
        const seen = one.events.length;
        await vi.waitFor(() => expect(one.events.length).toBeGreaterThan(seen), { timeout: 30_000 });
      }
      await writers.more(150);
      await writers.stop();
      await expectDelivered(one, writers.acknowledged, 60_000);
      expect([one.connections, all.connections, writers.refusals.length, writers.broken]).toEqual([1, 1, 0, 0]);
      expect(all.failures).toEqual([]);
      console.log(
        `${writers.acknowledged.length} writes, ${one.events.length} events: 0 lost, 0 repeated, 0 out of order`,
      );
    },
  );

  test(
    'while the broker is away writes are answered, lists have no cursor, watchers stay, and readiness tells why; then all of it comes',
    { timeout: 180_000 },
    async () => {
      const { tenant, token } = await makeTenant(instance);
      const watcher = watch(token, tenant);
      await watcher.ready;
      const client = await clientOf(instance, { roles: ['admin'], tenants: '*' });
      const widgets = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
      const first = await client.post(widgets, { metadata: { name: 'before' }, spec: { size: 1 } });
      expect(first.status).toBe(201);
      await watcher.until(() => true);
      const broker = kafka.node(1);
      await broker.stop();
      const away = performance.now();
      const writers = startWriters({ baseUrl, token, tenant, pauseMs: 100 });
      await writers.more(20);
      const list = await client.get(widgets);
      expect(list.status).toBe(200);
      expect(list.body.metadata.cursor).toBeUndefined();
      expect(list.headers.get('warning')).toMatch(/^199 plumbline /);
      // A new watcher is taken, and one that resumes.
      const late = watch(token, tenant);
      await late.ready;
      const readiness = await untilReadiness(instance.opsUrl, 503, AWAY_MS + 30_000);
      expect(readiness).toMatch(/the oldest unpublished event is 3\d s old; .*not available/);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, AWAY_MS - (performance.now() - away))));
      const bookmarks = watcher.bookmarks;
      expect(bookmarks).toBeGreaterThan(1);
      await broker.start();
      await writers.more(20);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged, 60_000);
      await untilReadiness(instance.opsUrl, 200, 30_000);
      expect([watcher.connections, late.connections, writers.refusals.length]).toEqual([1, 1, 0]);
      expect(late.failures).toEqual([]);
    },
  );

  test('a cursor behind what retention removed is refused with 410 and the cursor to go on from; one at the head is not', async () => {
    const { tenant, token } = await makeTenant(instance);
    const watcher = watch(token, tenant);
    await watcher.ready;
    const cursor = watcher.lastEventId;
    const writers = startWriters({ baseUrl, token, tenant });
    await writers.more(50);
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);
    const head = watcher.lastEventId;
    await removeRecords(tenant);
    // Where a topic begins is asked once a second at most; until then the stream is opened, and ended with the same.
    const answer = await vi.waitFor(async () => {
      const refused = await openWatch(token, tenant, cursor);
      if (refused.status !== 410) await refused.body?.cancel();
      expect(refused.status).toBe(410);
      return refused;
    }, 10_000);
    const status = (await answer.json()) as { reason: string; details: { cursor: string } };
    expect(status.reason).toBe('Expired');
    for (const accepted of [status.details.cursor, head]) {
      const next = await openWatch(token, tenant, accepted);
      expect(next.status).toBe(200);
      await next.body?.cancel();
    }
  });

  test(
    'a topic that was deleted costs its own watchers a new list, and no other tenant anything',
    { timeout: 120_000 },
    async () => {
      const [victim, other] = [await makeTenant(instance), await makeTenant(instance)];
      const [hit, spared] = [watch(victim.token, victim.tenant), watch(other.token, other.tenant)];
      await Promise.all([hit.ready, spared.ready]);
      const [lost, kept] = [
        startWriters({ baseUrl, token: victim.token, tenant: victim.tenant, pauseMs: 20 }),
        startWriters({ baseUrl, token: other.token, tenant: other.tenant, pauseMs: 20 }),
      ];
      await Promise.all([lost.more(40), kept.more(40)]);
      await deleteTopic(victim.tenant);
      await vi.waitFor(() => expect(hit.failures.join()).toMatch(/Expired|StreamRecreated/), { timeout: 60_000 });
      await Promise.all([lost.more(40), kept.more(40)]);
      await Promise.all([lost.stop(), kept.stop()]);
      await expectDelivered(spared, kept.acknowledged);
      expect(spared.connections).toBe(1);
      expect(longestSilenceMs(spared)).toBeLessThan(5_000);
      // A list, and what comes behind it.
      const client = await clientOf(instance, { roles: ['admin'], tenants: '*' });
      const widgets = `/apis/example.dev/v1/namespaces/${victim.tenant}/widgets`;
      const cursor = await vi.waitFor(
        async () => {
          const { metadata } = (await client.get(widgets)).body;
          expect(metadata.cursor).toBeDefined();
          return String(metadata.cursor);
        },
        { timeout: 30_000, interval: 200 },
      );
      const again = startResumingWatcher({ baseUrl, token: victim.token, tenants: victim.tenant, from: cursor });
      watchers.push(again);
      await again.ready;
      await client.post(widgets, { metadata: { name: 'after' }, spec: { size: 1 } });
      await again.until(({ type }) => type === 'ADDED');
      expect(again.failures).toEqual([]);
    },
  );

  function startOnKafka(): Promise<LocalInstance> {
    const env = { EVENT_LOG: 'kafka', KAFKA_BROKERS: kafka.brokers.join(',') };
    return startLocalInstance({ databaseUrl: database.url, env });
  }

  function watch(token: string, tenants?: string): ResumingWatcher {
    const watcher = startResumingWatcher({ baseUrl, token, ...(tenants !== undefined && { tenants }) });
    watchers.push(watcher);
    return watcher;
  }

  function openWatch(token: string, tenant: string, cursor: string): Promise<Response> {
    const query = new URLSearchParams({ tenants: tenant, from: cursor });
    return fetch(`${instance.baseUrl}/watch/v1/events?${query.toString()}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
  }

  async function topicOf(tenant: string): Promise<string> {
    const client = await clientOf(instance, { roles: ['admin'], tenants: '*' });
    const { status } = (await client.get(`/apis/plumbline.dev/v1/tenants/${tenant}`)).body;
    return String(status.eventStream.topic);
  }

  async function removeRecords(tenant: string): Promise<void> {
    await deleteRecords(kafka.brokers, await topicOf(tenant));
  }

  async function deleteTopic(tenant: string): Promise<void> {
    const topic = await topicOf(tenant);
    const admin = new KafkaClient({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [topic] });
    await admin.disconnect();
  }
});

function longestSilenceMs({ events }: ResumingWatcher): number {
  return Math.max(...events.map(({ atMs }, index) => atMs - (events[index - 1]?.atMs ?? atMs)));
}
