/** Tenants come and go while the log in Kafka is away: nothing of one is ever seen in its successor, and nothing stays behind. */

import { Kafka as KafkaClient, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Kafka } from '#infra/kafka/kafka-server.ts';
import { type Client, clientOf } from '#test/http/client.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const TENANTS = '/apis/plumbline.dev/v1/tenants';
const PATIENCE = { timeout: 60_000, interval: 100 };
const PURGE = 'plumbline.dev/purge-unpublished-events';

describeKafka('a tenant whose log is in Kafka', () => {
  let kafka: Kafka;
  let database: TestDatabase;
  let instance: LocalInstance;
  let admin: Client;

  beforeAll(async () => {
    [kafka, database] = await Promise.all([startTestKafka(), createTestDatabase()]);
    const env = { EVENT_LOG: 'kafka', KAFKA_BROKERS: kafka.brokers.join(','), TENANT_GRACE_SECONDS: '1' };
    instance = await startLocalInstance({ databaseUrl: database.url, env });
    admin = await clientOf(instance, { roles: ['admin'], tenants: '*' });
  }, 120_000);

  afterAll(async () => {
    await instance?.stop();
    await database?.drop();
    await kafka?.stop();
  });

  test(
    'that is deleted while the log is away goes once its last event is there; its topic is gone then, and its successor sees nothing of it',
    { timeout: 180_000 },
    async () => {
      const topic = await makeReady('acme');
      const token = await instance.token({ roles: ['admin'], tenants: '*' });
      const watcher = startResumingWatcher({ baseUrl: () => instance.baseUrl, token, tenants: 'acme' });
      await watcher.ready;
      await kafka.node(1).kill9();
      await addWidget('acme', 'old');
      await removeWidget('acme', 'old');
      await requestDeletion('acme');
      await vi.waitFor(
        async () => expect(await blocked('acme')).toMatchObject({ reason: 'EventsUnpublished' }),
        PATIENCE,
      );
      await kafka.node(1).start();
      await untilGone('acme');
      await watcher.until(({ type }) => type === 'DELETED');
      await watcher.stop();
      expect(await topicsAtBrokers()).not.toContain(topic);

      const next = await makeReady('acme');
      expect(next).not.toBe(topic);
      const uid = await addWidget('acme', 'new');
      const successor = startResumingWatcher({
        baseUrl: () => instance.baseUrl,
        token,
        tenants: 'acme',
        from: 'earliest',
      });
      await successor.until((event) => event.uid === uid);
      await successor.stop();
      expect(successor.events.map((event) => event.uid)).toEqual([uid]);
    },
  );

  test(
    'gives up what the log does not take when it is told to, and goes once its topic is gone',
    { timeout: 180_000 },
    async () => {
      const topic = await makeReady('globex');
      await kafka.node(1).kill9();
      await addWidget('globex', 'lost');
      await removeWidget('globex', 'lost');
      await requestDeletion('globex');
      const unpublished = { reason: 'EventsUnpublished', message: expect.stringContaining(PURGE) };
      await vi.waitFor(async () => expect(await blocked('globex')).toMatchObject(unpublished), PATIENCE);
      const body = { metadata: { annotations: { [PURGE]: 'true' } } };
      expect((await admin.patch(`${TENANTS}/globex`, body)).status).toBe(200);
      await vi.waitFor(
        async () => expect(await blocked('globex')).not.toMatchObject({ reason: 'EventsUnpublished' }),
        PATIENCE,
      );
      // What the brokers do not say is gone is not gone.
      expect((await admin.get(`${TENANTS}/globex`)).status).toBe(200);
      await kafka.node(1).start();
      await untilGone('globex');
      expect(await topicsAtBrokers()).not.toContain(topic);
    },
  );

  /** @returns its topic. */
  async function makeReady(name: string): Promise<string> {
    expect((await admin.post(TENANTS, { metadata: { name }, spec: {} })).status).toBe(201);
    return vi.waitFor(async () => {
      const { status } = (await admin.get(`${TENANTS}/${name}`)).body;
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'EventStreamReady', status: 'True' }));
      return String(status.eventStream.topic);
    }, PATIENCE);
  }

  /** @returns its uid. */
  async function addWidget(tenant: string, name: string): Promise<string> {
    const answer = await admin.post(`/apis/example.dev/v1/namespaces/${tenant}/widgets`, {
      metadata: { name },
      spec: {},
    });
    expect(answer.status).toBe(201);
    return answer.body.metadata.uid;
  }

  async function removeWidget(tenant: string, name: string): Promise<void> {
    expect((await admin.delete(`/apis/example.dev/v1/namespaces/${tenant}/widgets/${name}`)).status).toBe(200);
  }

  async function requestDeletion(name: string): Promise<void> {
    expect((await admin.delete(`${TENANTS}/${name}`)).status).toBe(202);
  }

  async function blocked(name: string): Promise<Record<string, unknown>> {
    return vi.waitFor(async () => {
      const { conditions } = (await admin.get(`${TENANTS}/${name}`)).body.status;
      const condition = conditions.find(({ type }: { type: string }) => type === 'DeletionBlocked');
      expect(condition).toBeDefined();
      return condition;
    }, PATIENCE);
  }

  async function untilGone(name: string): Promise<void> {
    await vi.waitFor(async () => expect((await admin.get(`${TENANTS}/${name}`)).status).toBe(404), PATIENCE);
  }

  async function topicsAtBrokers(): Promise<readonly string[]> {
    const client = new KafkaClient({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
    await client.connect();
    const topics = await client.listTopics();
    await client.disconnect();
    return topics;
  }
});
