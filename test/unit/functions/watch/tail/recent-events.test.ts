import { expect, test } from 'vitest';

import { RecentBudget, RecentEvents } from '#functions/watch/tail/recent-events.ts';
import { eventOf } from '#test/unit/functions/watch/fakes.ts';

const BOUNDS = { maxEvents: 3, maxBytes: 2_000, maxAgeMs: 100 };
const events = (from: number, to: number): ReturnType<typeof eventOf>[] =>
  Array.from({ length: to - from + 1 }, (_, index) => eventOf(1n, from + index));

function stateOf({ after, events: kept }: RecentEvents): readonly [bigint, readonly bigint[]] {
  return [after, kept.map(({ seq }) => seq)];
}

test('recent events are bounded by count, by age and by bytes, and know what they begin behind', () => {
  const recent = new RecentEvents(4n, new RecentBudget(), BOUNDS);
  expect(stateOf(recent)).toEqual([4n, []]);
  recent.append(events(5, 9), 0);
  expect(stateOf(recent)).toEqual([6n, [7n, 8n, 9n]]);
  recent.append(events(10, 10), 50);
  recent.trim(101);
  expect(stateOf(recent)).toEqual([9n, [10n]]);
  recent.append([{ ...eventOf(1n, 11), size: 1_600 }], 101);
  expect(stateOf(recent)).toEqual([10n, [11n]]);
  recent.append([{ ...eventOf(1n, 12), size: 5_000 }], 101);
  expect(stateOf(recent)).toEqual([12n, []]);
});

test('recent events of a tail that goes on elsewhere begin anew there', () => {
  const recent = new RecentEvents(0n, new RecentBudget(), BOUNDS);
  recent.append(events(1, 2), 0);
  recent.restart(40n);
  recent.append(events(41, 41), 0);
  expect(stateOf(recent)).toEqual([40n, [41n]]);
});

test('all streams together keep no more than their budget: the one without news for the longest time forgets first', () => {
  const budget = new RecentBudget(2_000);
  const [first, second, third] = [1, 2, 3].map(() => new RecentEvents(0n, budget));
  first?.append(events(1, 2), 0);
  second?.append(events(1, 2), 0);
  first?.append(events(3, 3), 0);
  expect(budget.bytes).toBe(5 * 352);
  third?.append(events(1, 1), 0);
  expect([first, second, third].map((recent) => recent && stateOf(recent))).toEqual([
    [0n, [1n, 2n, 3n]],
    [2n, []],
    [0n, [1n]],
  ]);
  second?.append(events(3, 3), 0);
  expect(second && stateOf(second)).toEqual([2n, [3n]]);
  expect(budget.bytes).toBe(5 * 352);
  first?.forget();
  second?.restart(40n);
  third?.trim(60_001);
  expect(budget.bytes).toBe(0);
});
