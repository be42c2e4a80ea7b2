import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  type Admin,
  Kafka as Client,
  type KafkaConfig,
  type Producer,
  ResourcePatternTypes,
  logLevel,
} from 'kafkajs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Kafka, type KafkaOptions, startKafka } from '#infra/kafka/kafka-server.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import { brokerIds } from '#infra/kafka/ready-probe.ts';
import { type Child, startChild } from '#test/support/child.ts';
import { gone, isRunning } from '#test/support/embedded.ts';
import { describeKafka, kafkaBrokers, startTestKafka } from '#test/support/kafka.ts';
import { FOLDER_PREFIX } from '#test/support/kafka-of-run.ts';
import { makeOwnFolder } from '#test/support/leftovers.ts';
import { startTcpProxy } from '#test/support/tcp-proxy.ts';

let dataDir: string;
let clusters: Kafka[];
let clients: (Admin | Producer)[];
let children: Child[];

beforeEach(async () => {
  dataDir = await makeOwnFolder(FOLDER_PREFIX);
  clusters = [];
  clients = [];
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([...clients.map((client) => client.disconnect()), ...children.map((child) => child.exit)]);
  await Promise.all(clusters.map((kafka) => kafka.stop()));
  await rm(dataDir, { recursive: true, maxRetries: 10 });
});

async function start(options: Partial<KafkaOptions> = {}): Promise<Kafka> {
  const kafka = await startKafka({ dataDir, ...options });
  clusters.push(kafka);
  return kafka;
}

async function startThrowaway(options: Partial<KafkaOptions>): Promise<Kafka> {
  const kafka = await startTestKafka(options);
  clusters.push(kafka);
  return kafka;
}

function clientOf(brokers: readonly string[], config: Partial<KafkaConfig> = {}): Client {
  return new Client({ brokers: [...brokers], logLevel: logLevel.NOTHING, connectionTimeout: 5_000, ...config });
}

async function adminOf(brokers: readonly string[], config: Partial<KafkaConfig> = {}): Promise<Admin> {
  const admin = clientOf(brokers, config).admin();
  clients.push(admin);
  await admin.connect();
  return admin;
}

async function makeTopic(admin: Admin, topic: string): Promise<void> {
  await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions: 1 }] });
  await expect.poll(() => leaderOf(admin, topic).catch(() => -1), { timeout: 10_000 }).toBeGreaterThan(0);
}

async function leaderOf(admin: Admin, topic: string): Promise<number> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  return topics[0]?.partitions[0]?.leader ?? -1;
}

async function write(brokers: readonly string[], topic: string, values: readonly string[]): Promise<void> {
  const producer = clientOf(brokers).producer({ allowAutoTopicCreation: false });
  clients.push(producer);
  await producer.connect();
  await producer.send({ topic, messages: values.map((value) => ({ value })) });
}

/** Reads as many records as there must be, from the beginning. */
async function read(brokers: readonly string[], topic: string, count: number): Promise<string[]> {
  const consumer = clientOf(brokers).consumer({
    groupId: `${topic}-${count}`,
    allowAutoTopicCreation: false,
    // It disconnects when the fetch that waits is answered.
    maxWaitTimeInMs: 100,
  });
  const values: string[] = [];
  const complete = Promise.withResolvers<undefined>();
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    async eachMessage({ message }) {
      values.push(String(message.value));
      if (values.length === count) complete.resolve(undefined);
    },
  });
  await complete.promise;
  await consumer.disconnect();
  return values;
}

describeKafka('startKafka()', () => {
  test('gives a broker that keeps what was acknowledged over kill -9, and over a stop', async () => {
    const exits: unknown[] = [];
    const { brokers, node } = await start({ onUnexpectedExit: (_, exit) => exits.push(exit) });
    await makeTopic(await adminOf(brokers), 'kept');
    await write(brokers, 'kept', ['a', 'b']);
    const { pid } = node(1);
    await node(1).kill9();
    expect([node(1).isRunning, await isRunning(pid)]).toEqual([false, false]);
    await node(1).start();
    expect(node(1).pid).not.toBe(pid);
    await write(brokers, 'kept', ['c']);
    await node(1).stop();
    await node(1).start();
    expect(await read(brokers, 'kept', 3)).toEqual(['a', 'b', 'c']);
    expect(exits).toEqual([]);
    process.kill(node(1).pid, 'SIGKILL');
    await expect.poll(() => exits).toEqual([{ code: null, signal: 'SIGKILL' }]);
  });

  test('makes no topic that nobody created', async () => {
    const admin = await adminOf(await kafkaBrokers());
    await expect(admin.fetchTopicMetadata({ topics: ['never-created'] })).rejects.toMatchObject({
      type: 'UNKNOWN_TOPIC_OR_PARTITION',
    });
  });

  test('is silent while it is frozen, goes on when it thaws, and can be stopped while it is frozen', async () => {
    const { node, stop } = await start();
    const { port, pid } = node(1);
    node(1).freeze();
    await expect(brokerIds(port)).rejects.toThrow('no answer within 1000 ms');
    node(1).thaw();
    expect(await brokerIds(port)).toEqual([1]);
    node(1).freeze();
    await Promise.all([stop(), stop()]);
    expect(await isRunning(pid)).toBe(false);
    await expect(brokerIds(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('elects another leader in a cluster of three when the leader is killed, and takes it back', async () => {
    const { brokers, node, nodes } = await startThrowaway({ nodes: 3 });
    const admin = await adminOf(brokers);
    await makeTopic(admin, 'replicated');
    await write(brokers, 'replicated', ['a']);
    const leader = await leaderOf(admin, 'replicated');
    await node(leader).kill9();
    const others = nodes.filter(({ id }) => id !== leader).map(({ port }) => `127.0.0.1:${port}`);
    const survivor = await adminOf(others);
    await expect.poll(() => leaderOf(survivor, 'replicated'), { timeout: 20_000 }).not.toBe(leader);
    await write(others, 'replicated', ['b']);
    await node(leader).start();
    expect(await read(brokers, 'replicated', 2)).toEqual(['a', 'b']);
  });

  test('ends with the process that started it, by kill -9 and frozen too, and another one goes on with its data', async () => {
    const holder = startChild('test/support/kafka-holder.ts', [dataDir]);
    children.push(holder);
    const { brokers, pid } = JSON.parse((await holder.nextLine()) ?? (await holder.exit).errors);
    await makeTopic(await adminOf(brokers), 'inherited');
    await write(brokers, 'inherited', ['a']);
    process.kill(pid, 'SIGSTOP');
    holder.kill('SIGKILL');
    await holder.exit;
    const next = await start();
    expect(await isRunning(pid)).toBe(false);
    expect(await read(next.brokers, 'inherited', 1)).toEqual(['a']);
  });

  test('leaves no process and no lock behind when it is stopped', async () => {
    const holder = startChild('test/support/kafka-holder.ts', [dataDir]);
    children.push(holder);
    const { pid } = JSON.parse((await holder.nextLine()) ?? (await holder.exit).errors);
    await expect(start()).rejects.toThrow(`${dataDir} is in use by process ${holder.pid}`);
    holder.end();
    expect(await holder.exit).toEqual({ code: 0, signal: null, errors: '' });
    await gone(pid);
  });

  test('tells clients the address that it was given, such as that of a proxy, which its own nodes do not use', async () => {
    const [port = 0] = await freePorts(1);
    const proxy = await startTcpProxy({ host: '127.0.0.1', port });
    const { brokers, internalBrokers } = await start({ port, advertised: [`127.0.0.1:${proxy.port}`] });
    expect(brokers).toEqual([`127.0.0.1:${proxy.port}`]);
    const { brokers: told } = await (await adminOf([`127.0.0.1:${port}`])).describeCluster();
    expect(told).toEqual([{ nodeId: 1, host: '127.0.0.1', port: proxy.port }]);
    await makeTopic(await adminOf(brokers), 'proxied');
    await proxy.refuse();
    await expect(adminOf(brokers, { retry: { retries: 0 } })).rejects.toThrow('ECONNREFUSED');
    expect(await (await adminOf(internalBrokers)).listTopics()).toEqual(['proxied']);
    await proxy.stop();
  });

  test('refuses a port that is taken when it was asked for that one', async () => {
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen({ host: '127.0.0.1', port: 0 }, resolve));
    const { port } = stranger.address() as AddressInfo;
    await expect(start({ port })).rejects.toThrow(
      `port ${port} of 127.0.0.1 is in use by another process; stop that process, or give Kafka another port (KAFKA_PORT)`,
    );
    stranger.close();
  });

  test('refuses a folder with a cluster of another size, says what Kafka says, and can be tried again', async () => {
    await expect(start({ settings: { 'num.partitions': 'many' } })).rejects.toThrow(
      /Kafka cannot format .*Invalid value many for configuration num\.partitions/,
    );
    await expect(start({ nodes: 3 })).rejects.toThrow(`${dataDir} holds a cluster of 1 node(s), and 3 were asked for`);
    const [port = 0] = await freePorts(1);
    const { brokers } = await start({ port });
    expect(brokers).toEqual([`127.0.0.1:${port}`]);
  });

  test('lets clients in by TLS and password alone, with the rights that they were given', async () => {
    const {
      brokers,
      internalBrokers,
      certificate = '',
    } = await start({
      access: {
        mechanisms: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'],
        users: { alice: 'wonderland' },
        isAuthorizing: true,
        isEncrypted: true,
      },
    });
    expect(certificate).toMatch(/^-----BEGIN CERTIFICATE-----/);
    const ssl = { ca: [certificate] };
    const once = { retry: { retries: 0 } };
    for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512'] as const) {
      const login = (password: string): Partial<KafkaConfig> => ({
        ...once,
        ssl,
        sasl: { mechanism, username: 'alice', password } as NonNullable<KafkaConfig['sasl']>,
      });
      const alice = await adminOf(brokers, login('wonderland'));
      expect(await alice.listTopics()).toEqual(mechanism === 'plain' ? [] : ['seen']);
      await expect(adminOf(brokers, login('guess'))).rejects.toThrow(/[Aa]uthentication failed/);
      if (mechanism !== 'plain') continue;
      const refused = alice.createTopics({ waitForLeaders: false, topics: [{ topic: 'seen' }] });
      await expect(refused).rejects.toMatchObject({ errors: [{ type: 'TOPIC_AUTHORIZATION_FAILED' }] });
      const administrator = await adminOf(internalBrokers);
      await makeTopic(administrator, 'seen');
      await administrator.createAcls({
        acl: [
          {
            resourceType: AclResourceTypes.TOPIC,
            resourceName: 'seen',
            resourcePatternType: ResourcePatternTypes.LITERAL,
            principal: 'User:alice',
            host: '*',
            operation: AclOperationTypes.DESCRIBE,
            permissionType: AclPermissionTypes.ALLOW,
          },
        ],
      });
    }
    await expect(adminOf(brokers, once).then((admin) => admin.listTopics())).rejects.toThrow();
    await expect(adminOf(brokers, { ...once, ssl }).then((admin) => admin.listTopics())).rejects.toThrow();
  });
});
