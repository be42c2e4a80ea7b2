/**
 * An archive of the classes that a broker loads (AppCDS, JEP 350), written by a broker that is started for that alone.
 * @see https://openjdk.org/jeps/350
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseAddresses } from '#infra/kafka/addresses.ts';
import { type KafkaPrograms, LOG_FILE, startBrokerProcess } from '#infra/kafka/broker-process.ts';
import { prepareNode } from '#infra/kafka/node-directory.ts';
import { nodeProperties } from '#infra/kafka/properties.ts';
import { waitForBrokers } from '#infra/kafka/ready-probe.ts';
import { readLogSince } from '#infra/_shared/postgres/log-file.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

const CLUSTER_ID = 'ArchiveOfItsClassesAAA';
const READY_TIMEOUT_MS = 60_000;
/** It writes the archive when it ends. */
const STOP_PATIENCE_MS = 60_000;

/** Takes about 4 s. @throws {StartError} when the broker does not start. */
export async function writeClassArchive(programs: KafkaPrograms, target: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-kafka-classes-'));
  try {
    const nodes = await chooseAddresses({ count: 1, port: undefined, advertised: undefined });
    const [node] = nodes;
    if (!node) throw new RangeError('no address was chosen');
    const properties = nodeProperties({ node, nodes });
    await prepareNode({ programs, directory, properties, clusterId: CLUSTER_ID });
    const broker = await startBrokerProcess({
      programs,
      directory,
      javaOptions: [`-XX:ArchiveClassesAtExit=${target}`],
    });
    try {
      const patience = AbortSignal.any([broker.gone, AbortSignal.timeout(READY_TIMEOUT_MS)]);
      if (await waitForBrokers(node.internalPort, (ids) => ids.length > 0, patience)) return;
      throw new StartError(`Kafka does not start: ${await readLogSince(join(directory, LOG_FILE), 0)}`);
    } finally {
      await broker.stop(STOP_PATIENCE_MS);
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  }
}
