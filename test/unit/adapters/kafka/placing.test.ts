import { expect, test } from 'vitest';
import { offsetBehind } from '#adapters/kafka/reading/placing.ts';
import { type LogPoint, ORIGIN, PositionExpired } from '#core/ports/event-log.ts';
import type { IndexedStream } from '#core/ports/log-index.ts';

test('behind an event is its offset and one', () => {
  expect(offsetBehind(1n, point(5, 9), indexed({}))).toBe(10n);
});

test('before the first event is the beginning of the topic, wherever the point lay in the topic before', () => {
  expect(offsetBehind(1n, ORIGIN, indexed({}))).toBe(0n);
  expect(offsetBehind(1n, point(7, 1_234), indexed({ firstSeq: 8n, start: point(7, 1_234) }))).toBe(0n);
});

test('at the start it is what is left, also when repetitions lay before', () => {
  expect(offsetBehind(1n, point(5, 4), indexed({ start: point(5, 8) }))).toBe(9n);
  expect(offsetBehind(1n, point(5, 8), indexed({ start: point(5, 4) }))).toBe(9n);
  expect(offsetBehind(1n, point(6, 5), indexed({ start: point(5, 8) }))).toBe(6n);
});

test('what retention has removed, or lay in a lost topic, is refused with where it goes on', () => {
  const start = point(5, 8);
  for (const after of [ORIGIN, point(4, 3)]) {
    expect(() => offsetBehind(1n, after, indexed({ start }))).toThrow(new PositionExpired(1n, start));
  }
  expect(() => offsetBehind(1n, point(6, 6), indexed({ firstSeq: 8n, start: point(7, 0) }))).toThrow(PositionExpired);
});

function point(seq: number, position: number): LogPoint {
  return { seq: BigInt(seq), position: BigInt(position) };
}

function indexed(some: Partial<IndexedStream>): IndexedStream {
  return { topic: 't', firstSeq: 1n, start: ORIGIN, head: ORIGIN, assigned: 100n, ...some };
}
