import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { polledListen } from '#adapters/postgres/polled-listen.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('listeners look again in the time of their channel, without a payload, until they listen no more', async () => {
  const listen = polledListen({ often: 250, seldom: 500 });
  const calls: string[] = [];
  const note =
    (name: string) =>
    (...args: readonly unknown[]): void =>
      void calls.push([name, ...args].join(' '));
  const often = await listen('often', note('often'));
  await listen('seldom', note('seldom'));
  await vi.advanceTimersByTimeAsync(500);
  expect(calls.toSorted()).toEqual(['often', 'often', 'seldom']);
  await often.unlisten();
  await vi.advanceTimersByTimeAsync(500);
  expect(calls.toSorted()).toEqual(['often', 'often', 'seldom', 'seldom']);
});

test('a channel without a time is left to the floor of who listens', async () => {
  const onNotice = vi.fn<(payload: string) => void>();
  const { unlisten } = await polledListen({})('other', onNotice);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(onNotice).not.toHaveBeenCalled();
  await unlisten();
});
