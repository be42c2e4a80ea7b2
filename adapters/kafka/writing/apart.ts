/**
 * Appends that are better written by themselves: those of a joint call that failed, and of topics that made one fail. Each
 * topic has a producer of its own here, so what is wrong with it is found out, and delays nobody else.
 */

import type { AppendJob } from '#adapters/kafka/writing/append-job.ts';
import { Late } from '#adapters/kafka/client/deadline.ts';
import { failureOf, toUnavailable, unavailable } from '#adapters/kafka/errors.ts';
import { type BatchProducer, connectedProducer } from '#adapters/kafka/writing/producer.ts';
import { RecordTooLarge, TopicLost } from '#core/ports/event-writer.ts';

export interface ApartDeps {
  readonly createProducer: () => BatchProducer;
  /** Whether the brokers know no such topic. @throws when that cannot be known. */
  readonly isMissing: (topic: string) => Promise<boolean>;
  /** Of a topic in one call. */
  readonly maxBytes: number;
}

export interface Apart {
  /** Whether appends of the topic are here, or failed here not long ago. */
  suspects(topic: string): boolean;
  add(job: AppendJob): void;
  /** Rejects what has not begun, and waits for the rest. */
  close(): Promise<void>;
}

/** Each with connections of its own. Those whose broker hangs take a place until their time is over. */
const TOPICS_AT_ONCE = 16;
/** Brokers take 9 s by default to give up one of theirs that hangs, which no producer leaves by itself. */
const TRY_MS = 5_000;
/** Until all brokers know of a topic that was just made: 30 ms on three idle ones. */
const NEW_TOPIC_MS = 300;
/** How long a topic stays here after a failure, unless it succeeds before. */
const SUSPICION_MS = 60_000;

export function createApart({ createProducer, isMissing, maxBytes }: ApartDeps): Apart {
  const queues = new Map<string, AppendJob[]>();
  const waiting: string[] = [];
  const suspectUntilMs = new Map<string, number>();
  const running = new Set<Promise<void>>();

  return {
    suspects(topic) {
      if ((suspectUntilMs.get(topic) ?? Number.POSITIVE_INFINITY) <= performance.now()) suspectUntilMs.delete(topic);
      return queues.has(topic) || suspectUntilMs.has(topic);
    },

    add(job) {
      const queue = queues.get(job.topic);
      if (queue) {
        queue.push(job);
        return;
      }
      queues.set(job.topic, [job]);
      waiting.push(job.topic);
      startNext();
    },

    async close() {
      for (const topic of waiting.splice(0)) rejectAll(topic);
      await Promise.all(running);
    },
  };

  function rejectAll(topic: string): void {
    for (const job of queues.get(topic) ?? []) job.reject(unavailable(`topic ${topic}: the writer was closed`));
    queues.delete(topic);
  }

  function startNext(): void {
    const topic = running.size < TOPICS_AT_ONCE ? waiting.shift() : undefined;
    if (topic === undefined) return;
    const run = writeTopic(topic).finally(() => {
      running.delete(run);
      startNext();
    });
    running.add(run);
  }

  async function writeTopic(topic: string): Promise<void> {
    const queue = queues.get(topic) ?? [];
    let producer: BatchProducer | undefined;
    for (let job = queue.shift(); job; job = queue.shift()) {
      // Its time was over before its turn came, which says nothing about the topic.
      if (job.isSettled) continue;
      producer = await writeJob(job, producer);
      suspectUntilMs.delete(topic);
      if (!producer) suspect(topic);
    }
    queues.delete(topic);
    await producer?.close();
  }

  function suspect(topic: string): void {
    const now = performance.now();
    // Topics that are gone are not asked for again.
    for (const [other, untilMs] of suspectUntilMs) if (untilMs <= now) suspectUntilMs.delete(other);
    suspectUntilMs.set(topic, now + SUSPICION_MS);
  }

  /** Settles the job. Returns its producer, unless that has failed. */
  async function writeJob(job: AppendJob, given: BatchProducer | undefined): Promise<BatchProducer | undefined> {
    let producer = given;
    let maxCount = Number.POSITIVE_INFINITY;
    let isAgain = false;
    while (!job.isSettled) {
      const { records } = job.next(maxBytes, maxCount);
      if (records.length === 0) break;
      try {
        producer ??= await connectedProducer(createProducer, timeLeftMs(job));
        const offsets = await producer.send(new Map([[job.topic, records]]), Math.min(timeLeftMs(job), TRY_MS));
        job.written(records.length, offsets.get(job.topic)!);
      } catch (error) {
        producer = undefined;
        const failure = failureOf(error);
        if (failure === 'too large' && records.length > 1) maxCount = Math.ceil(records.length / 2);
        else if (failure === 'missing topic' && !isAgain) isAgain = await patience();
        // Its broker hangs. The job's own time is the end; until then, the brokers may have chosen another.
        else if (error instanceof Late) continue;
        else job.reject(await explain(job, error));
      }
    }
    return producer;
  }

  async function explain({ topic, nextIndex }: AppendJob, error: unknown): Promise<Error> {
    const failure = failureOf(error);
    if (failure === 'too large') {
      return new RecordTooLarge(
        nextIndex,
        `topic ${topic} takes no record of this size: it is above its max.message.bytes; raise that, or make the object smaller`,
      );
    }
    if (failure === 'missing topic' && (await isMissing(topic).catch(() => false))) {
      return new TopicLost('missing', `the Kafka brokers know no topic ${topic}`);
    }
    return toUnavailable(error, `topic ${topic}`);
  }
}

/** A topic that was just made is not known by all brokers yet; true when it is time to look again. */
async function patience(): Promise<true> {
  await new Promise((resolve) => setTimeout(resolve, NEW_TOPIC_MS));
  return true;
}

function timeLeftMs({ expiresAtMs }: AppendJob): number {
  return Math.max(expiresAtMs - performance.now(), 1);
}
