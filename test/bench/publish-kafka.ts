/** Writing events to Kafka, 500 of 1 KB at a time, beside a stock kafkajs loop of the same records in the same run. */

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { startKafka } from '#infra/kafka/kafka-server.ts';
import type { LoopOptions, LoopResult } from '#test/bench/kafka-loop.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';
import { startChild } from '#test/support/child.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const PROGRAM = 'test/bench/kafka-loop.ts';
const ROUNDS = 3;
const BYTES = 900;
/** A young generation of 12 MiB, as suits a process that only publishes: by default V8 lets it grow to a hundred. */
const NODE_OPTIONS = '--max-semi-space-size=4';
const SETTINGS = { retentionMs: 3_600_000, retentionBytes: 100_000_000 };

/** Starts a broker of its own. */
export async function benchPublishKafka(): Promise<readonly Finding[]> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-bench-kafka-'));
  const kafka = await startKafka({ dataDir: folder, heapMebibytes: 512 });
  try {
    return [await compare(kafka.brokers, 1, 500), await compare(kafka.brokers, 20, 25)];
  } finally {
    await kafka.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function compare(brokers: readonly string[], topicCount: number, recordsPerTopic: number): Promise<Finding> {
  const admin = kafkaTopicAdmin({ settings: settingsFor(brokers), logger: silentLogger });
  const topics = Array.from({ length: topicCount }, () => `bench-${randomUUID()}`);
  for (const topic of topics) await admin.ensure(topic, SETTINGS);
  const load = { brokers, topics, recordsPerTopic, bytes: BYTES };
  const results: Record<LoopOptions['mode'], LoopResult[]> = { stock: [], writer: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const mode of ['stock', 'writer'] as const) {
      results[mode].push(await measure({ ...load, mode }));
    }
  }
  const perSecond = (mode: LoopOptions['mode']): number =>
    median(results[mode].map(({ recordsPerSecond }) => recordsPerSecond));
  const ratio = perSecond('writer') / perSecond('stock');
  const cpuMicros = median(results.writer.map(({ cpuMicrosPerRecord }) => cpuMicrosPerRecord));
  const stockRss = Math.max(...results.stock.map(({ rssMebibytes }) => rssMebibytes));
  // For the same work as the stock loop has done.
  const { rssMebibytes: rss } = await measure({ ...load, mode: 'writer', maxPerSecond: perSecond('stock') });
  return {
    what: `events of 1 KB to Kafka, ${recordsPerTopic} to each of ${topicCount} topics at a time`,
    figure: `${rate(perSecond('writer'))}, ${cpuMicros.toFixed(0)} µs CPU, ${rss.toFixed(0)} MiB at the rate of stock (stock ${rate(perSecond('stock'))}, ${stockRss.toFixed(0)} MiB)`,
    ratio: `${ratio.toFixed(2)}×`,
    goal: '≥ 1.0×, ≤ 150 MiB',
    met: ratio >= 1 && rss <= 150,
  };
}

async function measure(options: LoopOptions): Promise<LoopResult> {
  const child = startChild(PROGRAM, [JSON.stringify(options)], { env: { NODE_OPTIONS } });
  const line = await child.nextLine();
  if (line === undefined) throw new Error(`${PROGRAM} printed nothing: ${(await child.exit).errors}`);
  await child.exit;
  return JSON.parse(line);
}
