import { describe, expect, test } from 'vitest';

import type { AssignedLane } from '#core/ports/watch-groups.ts';
import { AckClock } from '#functions/watch/groups/member/ack-clock.ts';
import { Lane } from '#functions/watch/groups/member/lane.ts';
import { assigned } from '#test/unit/functions/watch/groups/member.ts';

const at = (seq: number): { seq: bigint; position: bigint } => ({ seq: BigInt(seq), position: BigInt(seq) });

function lane(change: Partial<AssignedLane> = {}, window: number = 2): Lane {
  return new Lane(assigned(0, change), { window, maxAttempts: 3 }, 0);
}

describe('a lane', () => {
  test('is confirmed no further than its first unacked event, and never twice', () => {
    const held = lane();
    held.passTo(at(5));
    expect([held.takeConfirmed(), held.takeConfirmed()]).toEqual([at(5), undefined]);
    held.deliver(at(6), 0, 0);
    held.passTo(at(9));
    expect(held.takeConfirmed()).toBeUndefined();
    expect(held.confirm(at(6))).toBe(1);
    expect(held.takeConfirmed()).toEqual(at(9));
  });

  test('gives a mark again that was not stored', () => {
    const held = lane();
    held.passTo(at(5));
    const confirmed = held.takeConfirmed();
    held.restore(undefined, confirmed);
    expect(held.takeConfirmed()).toEqual(at(5));
    held.deliver(at(6), 0, 0);
    expect([held.takeDelivered(), held.takeDelivered()]).toEqual([6n, undefined]);
    held.restore(6n, undefined);
    expect(held.takeDelivered()).toBe(6n);
  });

  test('has no room while its window is full, it waits, or others wait for it', () => {
    const held = lane({ pauseMs: 100 });
    expect([held.hasRoom(99), held.hasRoom(100)]).toEqual([false, true]);
    held.deliver(at(1), 0, 100);
    expect(held.hasRoom(100)).toBe(true);
    held.deliver(at(2), 1, 100);
    expect(held.hasRoom(100)).toBe(false);
    held.confirm(at(1));
    expect(held.hasRoom(100)).toBe(true);
    held.isWanted = true;
    expect(held.hasRoom(100)).toBe(false);
  });

  test('counts the deliveries of an event: those behind which it lies, and the next', () => {
    const held = lane({ deliveredBefore: [9n, 4n, 7n] });
    expect([4, 5, 7, 8, 10].map((seq) => held.attemptAt(BigInt(seq)))).toEqual([4, 3, 3, 2, 1]);
    expect([4, 5].map((seq) => held.isSpent(BigInt(seq)))).toEqual([true, false]);
  });

  test.each([1, 2])('delivers alone what is at the last of %s attempts', (maxAttempts) => {
    const before = Array.from({ length: maxAttempts - 1 }, () => 1n);
    const held = new Lane(assigned(0, { deliveredBefore: before }), { window: 2, maxAttempts }, 0);
    expect(held.hasRoom(0)).toBe(true);
    held.deliver(at(1), 0, 0);
    expect(held.hasRoom(0)).toBe(false);
  });

  test('delivers alone what is at its third attempt', () => {
    const held = lane({ deliveredBefore: [1n, 1n] });
    held.deliver(at(1), 0, 0);
    expect(held.hasRoom(0)).toBe(false);
    held.confirm(at(1));
    expect(held.hasRoom(0)).toBe(true);
  });
});

test('the clock of acks runs for each event from when all before it were acked, and looks once before it ends', () => {
  const clock = new AckClock(1_000);
  const first = { index: 0, atMs: 0 };
  const second = { index: 1, atMs: 0 };
  expect([clock.read(first, 0), clock.read(first, 999)]).toEqual(['running', 'running']);
  expect([clock.read(second, 999), clock.read(second, 1_998)]).toEqual(['running', 'running']);
  expect([clock.read(second, 1_999), clock.read(second, 2_000), clock.read(second, 2_999)]).toEqual([
    'look',
    'running',
    'over',
  ]);
  expect([clock.read(undefined, 3_000), clock.read(second, 3_000)]).toEqual(['running', 'running']);
});
