/** What is peculiar to a log in Kafka on workerd: what carries events, who tries again, and what a start refuses. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import type { Kafka } from '#infra/kafka/kafka-server.ts';
import { expectDelivered } from '#test/fault/delivery.ts';
import { untilReadiness } from '#test/fault/expectations.ts';
import { type ResumingWatcher, startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { clientOf } from '#test/http/client.ts';
import { TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import type { Target } from '#test/http/target.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { readTopic } from '#test/support/kafka-events.ts';
import { openSse } from '#test/support/sse-client.ts';
import { type Edge, noWorkerd, startEdge } from '#test/workerd/edge.ts';
import { killWorkerd } from '#test/workerd/workerd-process.ts';

const START_MS = 180_000;
const RESTART_LIMIT_MS = 60_000;
const NODES = 3;

describe.skipIf(noWorkerd)('on workerd', () => {
  describeKafka('with the log in Kafka', () => {
    let kafka: Kafka;
    let edge: Edge;
    let sql: Sql;
    let target: Target;
    let watchers: ResumingWatcher[] = [];
    const baseUrl = (): string => target.baseUrl;

    beforeAll(async () => {
      kafka = await startTestKafka({ nodes: NODES });
      edge = await startEdge({ EVENT_LOG: 'kafka', KAFKA_BROKERS: kafka.brokers.join(',') });
      target = edge.targets.public;
      sql = connect(edge.databaseUrl, { applicationName: 'test' });
    }, START_MS);

    afterEach(async () => {
      await Promise.all(watchers.map((watcher) => watcher.stop()));
      watchers = [];
    });

    afterAll(async () => {
      await sql?.end();
      await edge?.stop();
      await kafka?.stop();
    });

    function watch(token: string, tenants: string): ResumingWatcher {
      const watcher = startResumingWatcher({ baseUrl, token, tenants });
      watchers.push(watcher);
      return watcher;
    }

    /** A tenant with a watcher that is ready; `write` begins to write there. */
    async function watched() {
      const { tenant, token } = await makeTenant(target);
      const watcher = watch(token, tenant);
      await watcher.ready;
      const write = (options: { readonly pauseMs?: number; readonly count?: number } = {}) =>
        startWriters({ baseUrl, token, tenant, ...options });
      return { tenant, watcher, write };
    }

    test('what a watcher is sent lies in the topic of its tenant, and not in the database', async () => {
      const { tenant, watcher, write } = await watched();
      const writers = write();
      await writers.more(20);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged);
      const client = await clientOf(target, { roles: ['admin'], tenants: '*' });
      const { topic } = (await client.get(`${TENANTS}/${tenant}`)).body.status.eventStream;
      const records = await readTopic(kafka.brokers, topic);
      expect(records.length).toBe(watcher.events.length);
      const [row] = await sql`select count(*)::int4 as count from plumbline.event_log`;
      expect(row?.['count']).toBe(0);
    });

    test(
      'each broker in turn is killed under load: every answered write comes once and in order, on the same connection',
      { timeout: 300_000 },
      async () => {
        const tenants = await Promise.all(Array.from({ length: NODES }, watched));
        const written = tenants.map(({ watcher, write }) => ({ watcher, writers: write({ pauseMs: 20, count: 2 }) }));
        for (const node of kafka.nodes) {
          await Promise.all(written.map(({ writers }) => writers.more(20, RESTART_LIMIT_MS)));
          await node.kill9();
          await Promise.all(written.map(({ writers }) => writers.more(20, RESTART_LIMIT_MS)));
          await node.start();
        }
        for (const { watcher, writers } of written) {
          await writers.stop();
          await expectDelivered(watcher, writers.acknowledged, RESTART_LIMIT_MS);
          expect([watcher.connections, writers.refusals.length, writers.broken]).toEqual([1, 0, 0]);
        }
      },
    );

    test(
      'while all brokers are away writes are taken; when they are back, what waits is published without cron or another write',
      { timeout: 300_000 },
      async () => {
        const { watcher, write } = await watched();
        const writers = write({ pauseMs: 50 });
        await writers.more(20);
        await Promise.all(kafka.nodes.map((node) => node.kill9()));
        await writers.more(20);
        await writers.stop();
        expect(await untilReadiness(edge.opsUrl, 503, RESTART_LIMIT_MS)).toMatch(/not available|cannot be reached/);
        await Promise.all(kafka.nodes.map((node) => node.start()));
        await expectDelivered(watcher, writers.acknowledged, RESTART_LIMIT_MS);
        expect([watcher.connections, writers.refusals.length]).toEqual([1, 0]);
        await untilReadiness(edge.opsUrl, 200, RESTART_LIMIT_MS);
      },
    );

    test(
      'workerd is killed under load: watchers that resume see every answered write once and in order',
      { timeout: 300_000 },
      async () => {
        const { watcher, write } = await watched();
        const writers = write();
        await writers.more(40);
        await killWorkerd(edge.pid, 'worker');
        await writers.more(40, RESTART_LIMIT_MS);
        await writers.stop();
        await expectDelivered(watcher, writers.acknowledged, RESTART_LIMIT_MS);
        expect(watcher.connections).toBeGreaterThan(1);
      },
    );

    test(
      'brokers of another cluster than the installation has are written to by nobody, and told',
      { timeout: 300_000 },
      async () => {
        const { watcher, write } = await watched();
        const writers = write();
        await writers.more(5);
        const [chosen] = await sql`select cluster_id from plumbline.log_choice`;
        await sql`update plumbline.log_choice set cluster_id = 'another-cluster-000000'`;
        // An object that has found them right once believes it.
        await killWorkerd(edge.pid, 'worker');
        await writers.more(5, RESTART_LIMIT_MS);
        const told = await untilReadiness(edge.opsUrl, 503, RESTART_LIMIT_MS);
        expect(told).toMatch(/KAFKA_BROKERS leads to the cluster .* are in the cluster another-cluster-000000/);
        await writers.stop();
        const [row] = await sql`select count(*)::int4 as count from plumbline.outbox`;
        expect(row?.['count']).toBeGreaterThan(0);
        await sql`update plumbline.log_choice set cluster_id = ${chosen?.['cluster_id']}`;
        await expectDelivered(watcher, writers.acknowledged, RESTART_LIMIT_MS);
        await untilReadiness(edge.opsUrl, 200, RESTART_LIMIT_MS);
      },
    );

    test('a log that is switched under the worker ends its streams, and what wants another one than it has is refused', async () => {
      const { tenant, token } = await makeTenant(target);
      const query = new URLSearchParams({ tenants: tenant });
      const url = `${target.baseUrl}/watch/v1/events?${query.toString()}`;
      const client = await openSse(url, { token });
      await sql`select plumbline.switch_log('postgres', null, null)`;
      // Looked for every 5 s in shards, and by cron in the background.
      await client.ended;
      const refusal = /EVENT_LOG is ..?kafka.+but this installation has the log ..?postgres/;
      await expect(openSse(url, { token })).rejects.toThrow(refusal);
      await fetch(`${edge.opsUrl}/cdn-cgi/local/scheduled`);
      expect(await untilReadiness(edge.opsUrl, 503)).toMatch(refusal);
      const admin = await clientOf(target, { roles: ['admin'], tenants: '*' });
      expect((await admin.post(TENANTS, { metadata: { name: uniqueName('t') } })).status).toBe(201);
    });
  });

  describeKafka('with the log in Kafka behind TLS and a login', () => {
    test('what is written reaches a watcher', { timeout: 300_000 }, async () => {
      const kafka = await startTestKafka({
        access: { isEncrypted: true, mechanisms: ['SCRAM-SHA-512'], users: { alice: 'secret' } },
      });
      const folder = await mkdtemp(join(tmpdir(), 'plumbline-edge-tls-'));
      const authority = join(folder, 'authority.pem');
      await writeFile(authority, kafka.certificate ?? '');
      const variables = {
        EVENT_LOG: 'kafka',
        KAFKA_BROKERS: kafka.brokers.join(','),
        KAFKA_SSL: 'true',
        KAFKA_SASL_MECHANISM: 'scram-sha-512',
        KAFKA_USERNAME: 'alice',
        KAFKA_PASSWORD: 'secret',
        // wrangler has workerd trust it too; the platform trusts public authorities alone.
        NODE_EXTRA_CA_CERTS: authority,
      };
      const edge = await startEdge(variables);
      const target = edge.targets.public;
      const { tenant, token } = await makeTenant(target);
      const baseUrl = (): string => target.baseUrl;
      const watcher = startResumingWatcher({ baseUrl, token, tenants: tenant });
      await watcher.ready;
      const writers = startWriters({ baseUrl, token, tenant });
      await writers.more(20);
      await writers.stop();
      await expectDelivered(watcher, writers.acknowledged);
      await watcher.stop();
      await edge.stop();
      await kafka.stop();
      await rm(folder, { recursive: true });
    });
  });

  test('a start with brokers that are not there says so', async () => {
    await expect(startEdge({ EVENT_LOG: 'kafka', KAFKA_BROKERS: '127.0.0.1:1' })).rejects.toThrow(
      'the event log in Kafka cannot be used: no Kafka broker can be reached: 127.0.0.1:1 (ECONNREFUSED)',
    );
  });
});
