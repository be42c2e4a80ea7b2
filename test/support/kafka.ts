/**
 * Real Apache Kafka for tests: one broker that the whole run shares, started when the first test asks for it, and brokers
 * of a test's own, to be killed and frozen. On a machine without Java or Maven these tests are skipped, and the run says
 * so; `PLUMBLINE_TEST_KAFKA=required` makes it fail instead.
 *
 * `PLUMBLINE_TEST_KAFKA_VERSION=3.9.2` takes another version than the one of infra/kafka/pom.xml.
 */

import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, inject } from 'vitest';
import { installKafka } from '#infra/kafka/install.ts';
import { type Kafka, type KafkaOptions, startKafka } from '#infra/kafka/kafka-server.ts';
import {
  FOLDER_PREFIX,
  type KafkaAnswer,
  type KafkaOfRun,
  TEST_SETTINGS,
  chosenVersion,
} from '#test/support/kafka-of-run.ts';
import { makeOwnFolder } from '#test/support/leftovers.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly kafka: KafkaOfRun;
  }
}

const INSTALL_TIMEOUT_MS = 600_000;

/** `describe` for tests that need a broker; whatever starts or asks for one must be inside of it. */
export function describeKafka(name: string, tests: () => void): void {
  describe.skipIf(inject('kafka').problem !== undefined)(name, () => {
    // The first time on a machine it fetches, which has nothing to do with how long a test may take.
    beforeAll(() => installKafka(chosenVersion()).then(() => undefined), INSTALL_TIMEOUT_MS);
    tests();
  });
}

/** `host:port` of the run's broker: one node. Topics need names of their own, since all files share it. */
export async function kafkaBrokers(): Promise<readonly string[]> {
  const socket = connect({ host: '127.0.0.1', port: inject('kafka').port });
  const { brokers, problem }: KafkaAnswer = JSON.parse(await text(socket));
  if (!brokers) throw new Error(problem);
  return brokers;
}

/** Of an instance whose log is in that broker. */
export async function kafkaVariables(): Promise<Readonly<Record<string, string>>> {
  return { EVENT_LOG: 'kafka', KAFKA_BROKERS: (await kafkaBrokers()).join(',') };
}

/** A broker or a cluster of the test's own, in a folder that goes with it. It ends with the test's process. */
export async function startTestKafka(options: Omit<KafkaOptions, 'dataDir'> = {}): Promise<Kafka> {
  const folder = await makeOwnFolder(FOLDER_PREFIX);
  const kafka = await startKafka({
    ...chosenVersion(),
    ...options,
    dataDir: folder,
    settings: { ...TEST_SETTINGS, ...options.settings },
  }).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    throw error;
  });
  return {
    ...kafka,
    async stop() {
      // Nobody will miss what it would flush.
      await Promise.all(kafka.nodes.map((node) => node.kill9()));
      await kafka.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
