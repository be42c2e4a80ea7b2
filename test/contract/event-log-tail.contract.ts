/** What the tails of every event log keep. A part of the event log's contract. */

import { describe, expect, test } from 'vitest';
import type { StreamEvent } from '#core/event.ts';
import { type EventLog, ORIGIN, pointOf, PositionExpired } from '#core/ports/event-log.ts';
import type { EventLogFixture } from '#test/contract/event-log.contract.ts';

const DEADLINE_MS = 20_000;

export function tailContract(fixture: () => EventLogFixture): void {
  describe('a tail', () => {
    test('gives everything behind its point, in order and without a gap, while appends go on', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      await append(stream, 3);
      const [first] = await readAll(log, stream);
      if (!first) throw new Error('nothing was appended');
      const appending = (async () => {
        for (let round = 0; round < 20; round += 1) await append(stream, 5);
      })();
      const events = await takeUntil(log, stream, pointOf(first), 103n);
      await appending;
      expect(events.map(({ seq }) => seq)).toEqual(seqs(2, 103));
      expect(events.map(({ id }) => id)).toEqual((await readAll(log, stream)).slice(1).map(({ id }) => id));
    });

    test('waits for what comes, and has it soon', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      const coming = takeUntil(log, stream, ORIGIN, 1n);
      await append(stream, 1);
      const appendedAt = performance.now();
      await coming;
      expect(performance.now() - appendedAt).toBeLessThan(400);
    });

    test('of one stream gives nothing of another', async () => {
      const { log, newStream, append } = fixture();
      const [one, other] = [await newStream(), await newStream()];
      const coming = Promise.all([takeUntil(log, one, ORIGIN, 4n), takeUntil(log, other, ORIGIN, 4n)]);
      for (let round = 0; round < 4; round += 1) await Promise.all([append(one, 1), append(other, 1)]);
      const [ofOne, ofOther] = await coming;
      expect(ofOne.every(({ stream }) => stream === one)).toBe(true);
      expect(ofOther.every(({ stream }) => stream === other)).toBe(true);
    });

    test('ends when its signal aborts: while it waits, before it begins, and with a batch that was not taken', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      const waiting = new AbortController();
      const batches = log.tail(stream, ORIGIN, waiting.signal)[Symbol.asyncIterator]();
      const next = batches.next();
      await new Promise(setImmediate);
      waiting.abort();
      expect(await next).toEqual({ done: true, value: undefined });
      const ended = log.tail(stream, ORIGIN, AbortSignal.abort())[Symbol.asyncIterator]();
      expect(await ended.next()).toEqual({ done: true, value: undefined });
      await append(stream, 2);
      const holding = new AbortController();
      const held = log.tail(stream, ORIGIN, holding.signal)[Symbol.asyncIterator]();
      expect((await held.next()).done).toBe(false);
      holding.abort();
      expect(await held.next()).toEqual({ done: true, value: undefined });
    });

    test('can be left in the middle of a batch', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      await append(stream, 2);
      const { signal } = new AbortController();
      for await (const events of log.tail(stream, ORIGIN, signal)) {
        expect(events[0]?.seq).toBe(1n);
        break;
      }
      expect((await takeUntil(log, stream, ORIGIN, 2n)).map(({ seq }) => seq)).toEqual([1n, 2n]);
    });

    test('does not disturb another one of the same stream, wherever that is', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      await append(stream, 2);
      const stalled = new AbortController();
      const stalledBatches = log.tail(stream, ORIGIN, stalled.signal)[Symbol.asyncIterator]();
      await stalledBatches.next();
      const fromStart = takeUntil(log, stream, ORIGIN, 6n);
      const fromSecond = takeUntil(log, stream, pointOf((await readAll(log, stream))[1] as StreamEvent), 6n);
      await append(stream, 4);
      expect((await fromStart).map(({ seq }) => seq)).toEqual(seqs(1, 6));
      expect((await fromSecond).map(({ seq }) => seq)).toEqual(seqs(3, 6));
      stalled.abort();
    });

    test('makes its next batch when the last was taken: a slow reader is not flooded', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      await append(stream, 1);
      const lifetime = new AbortController();
      const batches = log.tail(stream, ORIGIN, lifetime.signal)[Symbol.asyncIterator]();
      const first = await batches.next();
      expect(first.value?.map(({ seq }: StreamEvent) => seq)).toEqual([1n]);
      for (let round = 0; round < 3; round += 1) {
        await append(stream, 1);
        // Another tail has it: so would this one.
        await takeUntil(log, stream, ORIGIN, BigInt(round + 2));
      }
      const second = await batches.next();
      expect(second.value?.map(({ seq }: StreamEvent) => seq)).toEqual([2n, 3n, 4n]);
      lifetime.abort();
    });

    test('cuts what lies far behind into batches', async () => {
      const { log, newStream, append } = fixture();
      const stream = await newStream();
      await append(stream, 1_500, 8_000);
      const sizes: number[] = [];
      const events = await takeUntil(log, stream, ORIGIN, 1_500n, (batch) => sizes.push(batch.length * 8_000));
      expect(events.map(({ seq }) => seq)).toEqual(seqs(1, 1_500));
      expect(Math.max(...sizes)).toBeLessThan(8 * 1024 * 1024);
    });

    test('is refused, and told from where it can be read, when retention is faster than its reader', async () => {
      const { log, newStream, append, expireAll } = fixture();
      const stream = await newStream();
      await append(stream, 1);
      const lifetime = new AbortController();
      const batches = log.tail(stream, ORIGIN, lifetime.signal)[Symbol.asyncIterator]();
      await batches.next();
      await append(stream, 2);
      const last = pointOf((await readAll(log, stream)).at(-1) as StreamEvent);
      await expireAll();
      const refusals = [batches, log.tail(stream, ORIGIN, lifetime.signal)[Symbol.asyncIterator]()].map(async (tail) =>
        tail.next().catch((error: unknown) => error),
      );
      for (const refusal of await Promise.all(refusals)) {
        expect(refusal).toBeInstanceOf(PositionExpired);
        expect(refusal).toMatchObject({ stream, earliest: last });
      }
      await append(stream, 1);
      expect((await takeUntil(log, stream, last, 4n)).map(({ seq }) => seq)).toEqual([4n]);
      lifetime.abort();
    });
  });
}

/** The events that a tail gives, up to and with this seq; each batch is shown too. */
async function takeUntil(
  log: EventLog,
  stream: bigint,
  after: Parameters<EventLog['tail']>[1],
  seq: bigint,
  onBatch: (events: readonly StreamEvent[]) => void = () => undefined,
): Promise<readonly StreamEvent[]> {
  const lifetime = new AbortController();
  const deadline = setTimeout(() => lifetime.abort(), DEADLINE_MS);
  const taken: StreamEvent[] = [];
  for await (const events of log.tail(stream, after, lifetime.signal)) {
    expect(events.length).toBeGreaterThan(0);
    onBatch(events);
    taken.push(...events);
    if ((taken.at(-1)?.seq ?? 0n) >= seq) break;
  }
  clearTimeout(deadline);
  lifetime.abort();
  return taken;
}

async function readAll(log: EventLog, stream: bigint): Promise<readonly StreamEvent[]> {
  const { events, more } = await log.read(stream, ORIGIN, { maxCount: 10_000, maxBytes: 64 * 1024 * 1024 });
  expect(more).toBe(false);
  return events;
}

function seqs(from: number, to: number): readonly bigint[] {
  return Array.from({ length: to - from + 1 }, (_, index) => BigInt(from + index));
}
