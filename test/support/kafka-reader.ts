/** Reading Kafka without PostgreSQL: an index in the test's hands, and tails that keep what they were given. */

import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { kafkaTopicAdmin } from '#adapters/kafka/topic-admin.ts';
import { type KafkaEventLog, kafkaEventLog } from '#adapters/kafka/event-log.ts';
import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, ORIGIN } from '#core/ports/event-log.ts';
import type { IndexedStream, LogIndex } from '#core/ports/log-index.ts';
import type { Logger } from '#core/ports/logger.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

export interface IndexInHand extends LogIndex {
  /** The stream lies in this topic from now on, whose first event has this number; readers are told. */
  place(stream: bigint, topic: string, options?: PlaceOptions): void;
  /** What it was told of topics that begin later. */
  readonly advances: readonly { readonly topic: string; readonly position: bigint }[];
}

export interface PlaceOptions {
  /** @default 1 */
  readonly firstSeq?: bigint;
  /** The number of the first event at or behind a position. @default each lies at its distance from the first one */
  readonly seqAt?: (position: bigint) => bigint;
}

/** All that there may be is assigned. */
export function indexInHand(): IndexInHand {
  const streams = new Map<bigint, IndexedStream & { readonly seqAt: (position: bigint) => bigint }>();
  const listeners = new Set<() => void>();
  const advances: { topic: string; position: bigint }[] = [];
  return {
    advances,
    streams: async (ids) => new Map([...streams].filter(([id]) => ids.includes(id))),
    async advanceStart(topic, position) {
      advances.push({ topic, position });
      for (const [id, indexed] of streams) {
        if (indexed.topic !== topic) continue;
        const start = { seq: indexed.seqAt(position) - 1n, position: position - 1n };
        if (start.seq > indexed.start.seq) streams.set(id, { ...indexed, start });
      }
    },
    onChange(listener, signal) {
      listeners.add(listener);
      signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    },
    place(stream, topic, { firstSeq = 1n, seqAt = (position: bigint) => firstSeq + position } = {}) {
      const start = { seq: firstSeq - 1n, position: 0n };
      streams.set(stream, { topic, firstSeq, start, head: start, assigned: 1_000_000_000n, seqAt });
      for (const listener of listeners) listener();
    },
  };
}

export function openLog(brokers: readonly string[], index: LogIndex, logger: Logger = silentLogger): KafkaEventLog {
  return kafkaEventLog({ settings: settingsFor(brokers), logger, index });
}

/** A topic of a test's own, as an instance makes them. */
export async function newTopic(brokers: readonly string[]): Promise<string> {
  const topic = `reading-${randomUUID()}`;
  await kafkaTopicAdmin({ settings: settingsFor(brokers), logger: silentLogger }).ensure(topic, {
    retentionMs: 3_600_000,
    retentionBytes: undefined,
  });
  return topic;
}

export interface Following {
  readonly seqs: readonly number[];
  readonly events: readonly StreamEvent[];
  /** Of each event, when it came; of `performance.now()`. */
  readonly arrivedAtMs: readonly number[];
  /** What it was refused with. */
  readonly refusal: unknown;
  /** Resolves when it has this many events, or was refused. */
  until(count: number, timeoutMs?: number): Promise<void>;
  stop(): void;
}

/** Tails as fast as it can. */
export function follow(log: EventLog, stream: bigint, after: LogPoint = ORIGIN): Following {
  const lifetime = new AbortController();
  const events: StreamEvent[] = [];
  const arrivedAtMs: number[] = [];
  let refusal: unknown;
  let onNews = (): void => undefined;
  void read();
  return {
    events,
    arrivedAtMs,
    get seqs() {
      return events.map(({ seq }) => Number(seq));
    },
    get refusal() {
      return refusal;
    },
    async until(count, timeoutMs = 30_000) {
      const endsAtMs = performance.now() + timeoutMs;
      while (events.length < count && refusal === undefined && performance.now() < endsAtMs) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, endsAtMs - performance.now());
          onNews = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      if (refusal === undefined) expect(events.length).toBeGreaterThanOrEqual(count);
    },
    stop: () => lifetime.abort(),
  };

  async function read(): Promise<void> {
    try {
      for await (const batch of log.tail(stream, after, lifetime.signal)) {
        for (const event of batch) {
          events.push(event);
          arrivedAtMs.push(performance.now());
        }
        onNews();
      }
    } catch (error) {
      refusal = error;
      onNews();
    }
  }
}

/** From this number to that one. */
export function seqsFrom(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export function pointAt(seq: number, position: number = seq - 1): LogPoint {
  return { seq: BigInt(seq), position: BigInt(position) };
}
