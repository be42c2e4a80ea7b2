/** A resident publisher into Kafka, with the keeper of its topics, in the test's own process: it counts what it is told. */

import { connect } from '#adapters/postgres/client.ts';
import { postgresWriterSleep } from '#adapters/postgres/writer-sleep.ts';
import { runTopicKeeper } from '#functions/publish/keep-topics.ts';
import { runResidentPublisher } from '#functions/publish/resident-publisher.ts';
import { kafkaPublishing } from '#test/support/kafka-publishing.ts';

export interface RunningPublisher {
  /** Events per batch that was published, with the time, by stream. */
  readonly published: ReadonlyMap<bigint, readonly PublishedBatch[]>;
  /** What it could not do, for streams or at all. */
  readonly errors: readonly unknown[];
  /** Appends that were tried. */
  readonly attempts: number;
  stop(): Promise<void>;
}

export interface PublishedBatch {
  readonly count: number;
  readonly atMs: number;
}

export function runPublisher(databaseUrl: string, brokers: readonly string[]): RunningPublisher {
  const sql = connect(databaseUrl, {
    applicationName: 'plumbline publisher',
    maxConnections: 4,
    role: 'plumbline_worker',
  });
  const published = new Map<bigint, PublishedBatch[]>();
  const errors: unknown[] = [];
  let attempts = 0;
  const stopping = new AbortController();
  const { signal } = stopping;
  const { outbox, keeping, close } = kafkaPublishing({
    sql,
    brokers,
    onTopicError: onError,
    around: ({ manifests, writer }) => ({
      manifests,
      writer: {
        async append(append) {
          attempts += 1;
          return writer.append(append);
        },
      },
    }),
  });
  const running = Promise.all([
    runTopicKeeper(keeping, signal),
    runResidentPublisher(
      {
        outbox,
        sleep: postgresWriterSleep({ role: 'publisher', databaseUrl, sql, signal }),
        onPublished,
        onError,
        onStreamError: (_, error) => onError(error),
      },
      signal,
    ),
  ]);
  return {
    published,
    errors,
    get attempts() {
      return attempts;
    },
    async stop() {
      stopping.abort();
      await running;
      await close();
      await sql.end({ timeout: 1 });
    },
  };

  function onPublished(stream: bigint, count: number): void {
    const batches = published.get(stream) ?? [];
    batches.push({ count, atMs: performance.now() });
    published.set(stream, batches);
  }

  function onError(error: unknown): void {
    errors.push(error);
  }
}

/** The longest time in which nothing of the stream was published, in ms; from `sinceMs` on. */
export function longestGapMs(
  { published }: RunningPublisher,
  stream: bigint,
  sinceMs: number,
  untilMs: number,
): number {
  const atMs = (published.get(stream) ?? [])
    .map((batch) => batch.atMs)
    .filter((time) => time > sinceMs && time < untilMs);
  const times = [sinceMs, ...atMs, untilMs];
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}
