/**
 * vitest's global setup: the Apache Kafka of the run, one for all projects that use it. It is started when the first
 * test asks for it, so a run of other tests does not pay for it.
 */

import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { installKafka, requireProgramsForKafka } from '#infra/kafka/install.ts';
import { type Kafka, startKafka } from '#infra/kafka/kafka-server.ts';
import { MissingProgramError } from '#infra/kafka/programs.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';
import {
  FOLDER_PREFIX,
  type KafkaAnswer,
  type KafkaOfRun,
  TEST_SETTINGS,
  chosenVersion,
} from '#test/support/kafka-of-run.ts';
import { makeOwnFolder, removeLeftovers } from '#test/support/leftovers.ts';

interface SharedKafka {
  readonly provided: KafkaOfRun;
  readonly stop: () => Promise<void>;
  users: number;
}

declare global {
  // Each project loads this module anew; the process is what they share.
  var plumblineTestKafka: Promise<SharedKafka> | undefined;
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  globalThis.plumblineTestKafka ??= open();
  const opened = await globalThis.plumblineTestKafka;
  opened.users++;
  project.provide('kafka', opened.provided);

  return async function teardown() {
    if (--opened.users === 0) await opened.stop();
  };
}

async function open(): Promise<SharedKafka> {
  const isRequired = process.env['PLUMBLINE_TEST_KAFKA'] === 'required';
  const problem = await problemOf(requireProgramsForKafka());
  if (isRequired && problem !== undefined) throw new Error(`PLUMBLINE_TEST_KAFKA is "required": ${problem}`);
  if (problem !== undefined) say(`The tests on Apache Kafka are left out: ${problem}`);
  if (isRequired) await installKafka({ ...chosenVersion(), onProgress: say });
  await removeLeftovers(FOLDER_PREFIX);

  let started: Promise<{ kafka: Kafka; folder: string }> | undefined;
  const server = await listen((socket) => {
    started ??= start();
    started.then(
      ({ kafka }) => answer(socket, { brokers: kafka.brokers }),
      (error: unknown) => answer(socket, { problem: messageOf(error) }),
    );
  });
  return {
    provided: { port: (server.address() as AddressInfo).port, ...(problem !== undefined && { problem }) },
    users: 0,
    async stop() {
      server.close();
      const running = await started?.catch(() => undefined);
      if (!running) return;
      await running.kafka.stop();
      await rm(running.folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Of programs that are missing; anything else is thrown. */
async function problemOf(looking: Promise<void>): Promise<string | undefined> {
  try {
    await looking;
    return undefined;
  } catch (error) {
    if (error instanceof MissingProgramError) return error.message;
    throw error;
  }
}

async function start(): Promise<{ kafka: Kafka; folder: string }> {
  const folder = await makeOwnFolder(FOLDER_PREFIX);
  const kafka = await startKafka({
    ...chosenVersion(),
    dataDir: folder,
    settings: TEST_SETTINGS,
    onProgress: say,
    onUnexpectedExit: (_, { code, signal }, said) =>
      say(`The Kafka that the tests share ended by itself (${signal ?? `exit code ${code}`}): ${said}`),
  });
  return { kafka, folder };
}

async function listen(accept: (socket: Socket) => void): Promise<Server> {
  const server = createServer(accept);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  return server;
}

/** Workers can be killed while they wait. */
function answer(socket: Socket, message: KafkaAnswer): void {
  socket.on('error', () => undefined).end(JSON.stringify(message));
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
