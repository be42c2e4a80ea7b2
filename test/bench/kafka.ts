/** A broker for a bench. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startKafka } from '#infra/kafka/kafka-server.ts';

/** Of one node, with the heap that its figures are not spoiled by. */
export async function withKafka<T>(work: (brokers: readonly string[]) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-bench-kafka-'));
  const kafka = await startKafka({ dataDir: folder, heapMebibytes: 512 });
  try {
    return await work(kafka.brokers);
  } finally {
    await kafka.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
