import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';

import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, type Admin, ResourcePatternTypes } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { kafkaClient, type KafkaSettings } from '#adapters/kafka/client/client.ts';
import { checkCluster } from '#adapters/kafka/cluster-check.ts';
import { versionProblem } from '#adapters/kafka/client/versions.ts';
import { kafkaEventWriter } from '#adapters/kafka/event-writer.ts';
import { describeKafka, kafkaBrokers, startTestKafka } from '#test/support/kafka.ts';
import { numberedEvents, readTopic, settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const PREFIX = 'plumbline.events.';
const PATIENCE_MS = 120_000;

const check = (settings: KafkaSettings) => checkCluster(settings, { topicPrefix: PREFIX, logger: silentLogger });

describeKafka('the check of a cluster', () => {
  let brokers: readonly string[];
  beforeAll(async () => {
    brokers = await kafkaBrokers();
  });

  it('names the cluster and its brokers', async () => {
    const found = await check(settingsFor(brokers));
    expect(found.clusterId).toMatch(/^[\w-]{22}$/);
    expect(found.brokers).toEqual(brokers);
  });

  it('is content with one address that answers', async () => {
    expect(await check(settingsFor(['127.0.0.1:1', ...brokers]))).toMatchObject({ brokers });
  });

  it('says that TLS is configured, and the broker speaks none', async () => {
    await expect(check({ ...settingsFor(brokers), ssl: true })).rejects.toThrow(
      `${brokers[0]} speaks no TLS, and TLS is configured (ECONNRESET)`,
    );
  });

  it('says that a login is configured, and the broker knows none', async () => {
    await expect(check({ ...settingsFor(brokers), ...login('plain', 'alice', 'secret') })).rejects.toThrow(
      `${brokers[0]} knows no login, and one is configured; leave it out, or use the listener that has it`,
    );
  });

  it('says that the brokers would not make topics of this name', async () => {
    const checking = checkCluster(settingsFor(brokers), { topicPrefix: 'no name ', logger: silentLogger });
    await expect(checking).rejects.toThrow(/would not create a topic named "no name …": INVALID_TOPIC_EXCEPTION: /);
  });
});

describe('the check of what is no cluster', () => {
  it('names all addresses that cannot be reached', async () => {
    await expect(check(settingsFor(['127.0.0.1:1', '127.0.0.1:2']))).rejects.toThrow(
      'no Kafka broker can be reached: 127.0.0.1:1 (ECONNREFUSED), 127.0.0.1:2 (ECONNREFUSED)',
    );
  });

  it('says that something else listens there', async () => {
    const { server, address } = await listen(createHttpServer());
    await expect(check(settingsFor([address]))).rejects.toThrow(
      `${address} closes the connection: it may want TLS, which is not configured, or be no Kafka broker`,
    );
    server.close();
  });

  it('ends in time when nobody answers', async () => {
    const sockets: Socket[] = [];
    const { server, address } = await listen(createTcpServer((socket) => sockets.push(socket)));
    const startedMs = performance.now();
    await expect(check(settingsFor([address]))).rejects.toThrow(`no Kafka broker can be reached: ${address} (`);
    expect(performance.now() - startedMs).toBeLessThan(16_000);
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});

describe('the versions of a broker', () => {
  const versions = (produce: [number, number], fetch: [number, number]) => ({
    0: { minVersion: produce[0], maxVersion: produce[1] },
    1: { minVersion: fetch[0], maxVersion: fetch[1] },
  });

  it.each([
    ['Kafka 2.4', versions([0, 8], [0, 11])],
    ['Kafka 4.3', versions([0, 13], [4, 18])],
  ])('are fine for %s', (_, given) => {
    expect(versionProblem(given)).toBeUndefined();
  });

  it.each([
    [
      'Kafka 2.2',
      versions([0, 7], [0, 10]),
      /is too old: of the request Fetch version 11 is needed, and it knows 0 to 10/,
    ],
    ['Kafka 1.1', versions([0, 5], [0, 7]), /is too old: of the request Produce version 7 is needed/],
    ['a later one', versions([8, 20], [4, 20]), /is too new: of the request Produce version 7 is the newest/],
    ['none', null, /is too old: of the request Produce version 7 is needed, and it does not know it/],
  ])('are told for %s', (_, given, words) => {
    expect(versionProblem(given)).toMatch(words);
  });
});

describeKafka('a cluster with logins and rights', () => {
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;
  let admin: Admin;
  let alice: KafkaSettings;

  beforeAll(async () => {
    kafka = await startTestKafka({
      access: {
        mechanisms: ['PLAIN', 'SCRAM-SHA-512'],
        users: { alice: 'secret', bob: 'hidden' },
        isAuthorizing: true,
      },
    });
    admin = kafkaClient(settingsFor(kafka.internalBrokers), silentLogger).admin();
    await admin.connect();
    alice = { ...settingsFor(kafka.brokers), ...login('scram-sha-512', 'alice', 'secret') };
  }, PATIENCE_MS);
  afterAll(async () => {
    await admin?.disconnect();
    await kafka?.stop();
  });

  it('is told when it wants a login and none is configured', async () => {
    await expect(check(settingsFor(kafka.brokers))).rejects.toThrow(
      `${kafka.brokers[0]} closes the connection: it may want a login, which is not configured`,
    );
  });

  it.each(['plain', 'scram-sha-512'] as const)(
    'is told when it refuses the login by %s, without the password',
    async (how) => {
      const refused = await check({ ...alice, ...login(how, 'alice', 'wrong-password') }).catch(String);
      expect(refused).toMatch(new RegExp(`${kafka.brokers[0]} refuses the login of "alice" by ${how}: SASL .*failed`));
      expect(refused).not.toContain('wrong-password');
    },
  );

  it('is told when it does not know the mechanism', async () => {
    await expect(check({ ...alice, ...login('scram-sha-256', 'alice', 'secret') })).rejects.toThrow(
      `${kafka.brokers[0]} knows no login by scram-sha-256; configure one of its mechanisms`,
    );
  });

  it('is told which rights are missing, and needs no others than these', async () => {
    await expect(check(alice)).rejects.toThrow(
      `the Kafka principal may not create topics named "${PREFIX}…"; grant it Create on that prefix`,
    );
    await grant('alice', [AclOperationTypes.CREATE]);
    await expect(check(alice)).rejects.toThrow(
      `the Kafka principal may not write; grant it Write on topics named "${PREFIX}…"`,
    );
    // The table in the README.
    await grant('alice', [
      AclOperationTypes.WRITE,
      AclOperationTypes.READ,
      AclOperationTypes.DELETE,
      AclOperationTypes.ALTER_CONFIGS,
    ]);
    await check(alice);
    const topics = kafkaTopicAdmin({ settings: alice, logger: silentLogger });
    const writer = kafkaEventWriter({ settings: alice, logger: silentLogger, compression: 'none' });
    const topic = `${PREFIX}acme.1`;
    await topics.ensure(topic, { retentionMs: 3_600_000, retentionBytes: undefined });
    await topics.ensure(topic, { retentionMs: 7_200_000, retentionBytes: undefined });
    await writer.append({ topic, lastPosition: undefined, events: numberedEvents(1, 3) });
    expect(await topics.extents([topic])).toEqual(
      new Map([[topic, { start: 0n, end: 3n, identity: expect.any(String) }]]),
    );
    expect(await readTopic(alice.brokers, topic, alice)).toHaveLength(3);
    await topics.remove(topic);
    await writer.close();
  });

  it('refuses what the principal has no right to as something to be granted', async () => {
    const bob = { ...alice, ...login('plain', 'bob', 'hidden') };
    const topics = kafkaTopicAdmin({ settings: bob, logger: silentLogger });
    const writer = kafkaEventWriter({ settings: bob, logger: silentLogger, compression: 'none' });
    const topic = `${PREFIX}acme.2`;
    const message = `topic ${topic}: the Kafka principal has no right to do this; grant it`;
    const refusal = { reason: 'ServiceUnavailable', message };
    await expect(topics.ensure(topic, { retentionMs: 1, retentionBytes: undefined })).rejects.toMatchObject(refusal);
    const append = { topic, lastPosition: undefined, events: numberedEvents(1, 1) };
    await expect(writer.append(append)).rejects.toMatchObject(refusal);
    await writer.close();
  });

  async function grant(user: string, operations: readonly AclOperationTypes[]): Promise<void> {
    await admin.createAcls({
      acl: operations.map((operation) => ({
        resourceType: AclResourceTypes.TOPIC,
        resourceName: PREFIX,
        resourcePatternType: ResourcePatternTypes.PREFIXED,
        principal: `User:${user}`,
        host: '*',
        operation,
        permissionType: AclPermissionTypes.ALLOW,
      })),
    });
  }
});

describeKafka('a cluster with TLS', () => {
  it(
    'is told when its certificate is not trusted, and when no TLS is configured',
    async () => {
      const kafka = await startTestKafka({ access: { isEncrypted: true } });
      const [address] = kafka.brokers;
      try {
        await expect(check({ ...settingsFor(kafka.brokers), ssl: true })).rejects.toThrow(
          `the TLS certificate of ${address} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); ` +
            'have Node trust its authority, with NODE_EXTRA_CA_CERTS',
        );
        await expect(check(settingsFor(kafka.brokers))).rejects.toThrow(
          `${address} closes the connection: it may want TLS, which is not configured, or be no Kafka broker`,
        );
      } finally {
        await kafka.stop();
      }
    },
    PATIENCE_MS,
  );
});

function login(
  mechanism: NonNullable<KafkaSettings['sasl']>['mechanism'],
  username: string,
  password: string,
): Pick<KafkaSettings, 'sasl'> {
  return { sasl: { mechanism, username, password } };
}

async function listen(server: Server): Promise<{ server: Server; address: string }> {
  await new Promise((resolve) => server.once('listening', resolve).listen(0, '127.0.0.1'));
  return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}
