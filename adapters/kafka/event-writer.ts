/**
 * The writing end of the event log in Kafka.
 *
 * Appends that come while others are under way wait, and then share one call, of each topic a part: one round trip for all
 * of them. A call that fails says little about who is to blame, and its producer cannot be used any more; so each of its
 * appends is then written apart. When no broker can be reached, all are rejected: who calls knows when to try again.
 */

import { createApart } from '#adapters/kafka/writing/apart.ts';
import { type AppendJob, appendJob } from '#adapters/kafka/writing/append-job.ts';
import { within } from '#adapters/kafka/client/deadline.ts';
import { toUnavailable, unavailable } from '#adapters/kafka/errors.ts';
import {
  type BatchProducer,
  type Compression,
  connectedProducer,
  createBatchProducer,
} from '#adapters/kafka/writing/producer.ts';
import type { EventRecord } from '#adapters/kafka/records.ts';
import type { SessionDeps } from '#adapters/kafka/client/session.ts';
import { isMissing } from '#adapters/kafka/topics/topic-metadata.ts';
import type { EventWriter } from '#core/ports/event-writer.ts';

export interface KafkaEventWriterOptions extends SessionDeps {
  readonly compression: Compression;
}

export interface KafkaEventWriter extends EventWriter {
  /** Lets what is under way arrive, for some seconds. Appends are rejected from now on. */
  close(): Promise<void>;
}

/** What the caller waits at most. */
const APPEND_TIMEOUT_MS = 15_000;
/** Of a joint call: a broker that hangs holds up the topics of the others for so long. Then there is time to write apart. */
const CALL_TIMEOUT_MS = 7_000;
/** To reach any broker at all. */
const CONNECT_TIMEOUT_MS = 9_000;
const LOOK_TIMEOUT_MS = 3_000;
const CLOSE_TIMEOUT_MS = 8_000;
/** Records of one topic in one call are one batch, and a topic that is not of our making takes 1 MiB by default. */
const MAX_TOPIC_BYTES = 900_000;
/** Of all topics in a call; bounds memory, of which a call takes some four times its size. */
const MAX_CALL_BYTES = 4 * 1024 * 1024;

/** The next events of an append. */
interface Part {
  readonly job: AppendJob;
  readonly records: readonly EventRecord[];
}

/** What is written together: of each topic one part. */
type Call = ReadonlyMap<string, Part>;

export function kafkaEventWriter(options: KafkaEventWriterOptions): KafkaEventWriter {
  const createProducer = (): BatchProducer => createBatchProducer(options);
  const apart = createApart({
    createProducer,
    isMissing: (topic) => isMissing(options, topic, LOOK_TIMEOUT_MS),
    maxBytes: MAX_TOPIC_BYTES,
  });
  let queue: readonly AppendJob[] = [];
  let producer: BatchProducer | undefined;
  let isWriting = false;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  return {
    async append(given) {
      if (isClosed) throw unavailable('the writer of the Kafka event log is closed');
      const job = appendJob(given, APPEND_TIMEOUT_MS);
      if (apart.suspects(job.topic)) apart.add(job);
      else queue = [...queue, job];
      if (!isWriting) writing = writeAll();
      return job.result;
    },

    async close() {
      isClosed = true;
      for (const job of queue) job.reject(unavailable(`topic ${job.topic}: the writer was closed`));
      // A call under way ends with its producer.
      const ends = Promise.all([producer?.close(), apart.close(), writing]);
      await within(ends, CLOSE_TIMEOUT_MS, 'closing the writer').catch(() => undefined);
    },
  };

  async function writeAll(): Promise<void> {
    isWriting = true;
    // So that appends of the same turn of the event loop share the first call.
    await new Promise((resolve) => setImmediate(resolve));
    for (let call = nextCall(); call.size > 0; call = nextCall()) await write(call);
    // In the same turn as the look that found nothing, or the next append would wait for ever.
    isWriting = false;
  }

  /** Its appends leave the queue. */
  function nextCall(): Call {
    const call = new Map<string, Part>();
    let room = MAX_CALL_BYTES;
    queue = queue.filter((job) => {
      if (job.isSettled || call.has(job.topic) || room <= 0) return !job.isSettled;
      const { records, bytes } = job.next(Math.min(MAX_TOPIC_BYTES, room));
      if (records.length > 0) call.set(job.topic, { job, records });
      room -= bytes;
      return false;
    });
    return call;
  }

  async function write(call: Call): Promise<void> {
    const jobs = [...call.values()].map(({ job }) => job);
    try {
      producer = await connected(producer);
    } catch (error) {
      // They all need the same brokers.
      reject([...jobs, ...queue], error);
      return;
    }
    try {
      const records = new Map([...call].map(([topic, part]) => [topic, part.records]));
      const offsets = await producer.send(records, CALL_TIMEOUT_MS);
      for (const [topic, part] of call) part.job.written(part.records.length, offsets.get(topic)!);
      queue = [...jobs, ...queue];
    } catch (error) {
      await writeApart(jobs, error);
    }
  }

  async function connected(last: BatchProducer | undefined): Promise<BatchProducer> {
    if (last && !last.isSpent) return last;
    void last?.close();
    if (isClosed) throw unavailable('the writer was closed');
    return connectedProducer(createProducer, CONNECT_TIMEOUT_MS);
  }

  /** Unless no broker can be reached: then none of them is to blame. */
  async function writeApart(jobs: readonly AppendJob[], failure: unknown): Promise<void> {
    try {
      producer = await connected(producer);
    } catch {
      reject([...jobs, ...queue], failure);
      return;
    }
    const topics = new Set(jobs.map(({ topic }) => topic));
    // Behind them what came later for their topics.
    for (const job of [...jobs, ...queue.filter(({ topic }) => topics.has(topic))]) apart.add(job);
    queue = queue.filter(({ topic }) => !topics.has(topic));
  }

  function reject(jobs: readonly AppendJob[], cause: unknown): void {
    for (const job of jobs) job.reject(toUnavailable(cause, `topic ${job.topic}`));
  }
}
