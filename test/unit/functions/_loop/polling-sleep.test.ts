import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { pollingSleep } from '#loop/polling-sleep.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const noDrain = async (): Promise<void> => undefined;

/** Whether it has resolved, once what is due now has run. */
async function isOver(sleep: Promise<void>): Promise<boolean> {
  let over = false;
  void sleep.then(() => (over = true));
  await vi.advanceTimersByTimeAsync(0);
  return over;
}

test('a sleep ends after its time, and not before', async () => {
  const sleep = pollingSleep(250, new AbortController().signal).sleep(noDrain);
  await vi.advanceTimersByTimeAsync(249);
  expect(await isOver(sleep)).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await isOver(sleep)).toBe(true);
});

test('a call ends the sleep, or the next one when nobody sleeps, and no other', async () => {
  const loop = pollingSleep(250, new AbortController().signal);
  const first = loop.sleep(noDrain);
  loop.wake();
  expect(await isOver(first)).toBe(true);
  loop.wake();
  expect(await isOver(loop.sleep(noDrain))).toBe(true);
  expect(await isOver(loop.sleep(noDrain))).toBe(false);
});

test('an abort ends the sleep, and those after it', async () => {
  const stop = new AbortController();
  const loop = pollingSleep(250, stop.signal);
  const sleep = loop.sleep(noDrain);
  stop.abort();
  expect(await isOver(sleep)).toBe(true);
  expect(await isOver(loop.sleep(noDrain))).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
