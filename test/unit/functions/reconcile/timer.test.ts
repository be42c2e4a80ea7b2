import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createTimer } from '#functions/reconcile/timer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('it rings at the nearest of the times that were asked for, once', () => {
  const ring = vi.fn();
  const timer = createTimer(ring);
  timer.in(500);
  timer.in(100);
  timer.in(900);
  timer.in(undefined);
  vi.advanceTimersByTime(99);
  expect(ring).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2_000);
  expect(ring).toHaveBeenCalledTimes(1);
});

test('after it has rung it can be asked again', () => {
  const ring = vi.fn();
  const timer = createTimer(ring);
  timer.in(10);
  vi.advanceTimersByTime(10);
  timer.in(5_000);
  vi.advanceTimersByTime(5_000);
  expect(ring).toHaveBeenCalledTimes(2);
});

test('it rings in time for what lies further away than a timer of JavaScript can count', () => {
  const ring = vi.fn();
  const timer = createTimer(ring);
  timer.in(30 * 24 * 3_600_000);
  vi.advanceTimersByTime(1_000);
  expect(ring).not.toHaveBeenCalled();
});

test('cleared, it rings no more', () => {
  const ring = vi.fn();
  const timer = createTimer(ring);
  timer.in(10);
  timer.clear();
  vi.advanceTimersByTime(100);
  expect(ring).not.toHaveBeenCalled();
});
