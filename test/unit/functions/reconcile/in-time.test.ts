import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { inTime } from '#functions/reconcile/in-time.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const forever = (): Promise<never> => new Promise(() => undefined);

/** Handles the rejection from the start. */
async function messageOf(calling: Promise<unknown>): Promise<string> {
  return calling.then(
    () => 'it has not failed',
    (error: unknown) => (error as Error).message,
  );
}

test('a call in time gives its value, or what it throws, and nothing is left running', async () => {
  expect(await inTime(async () => 5, 1_000)).toBe(5);
  await expect(inTime(() => Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no');
  expect(vi.getTimerCount()).toBe(0);
});

test('a call that hangs is told to end when its time is up, and not waited for', async () => {
  let told: AbortSignal | undefined;
  const calling = inTime((signal) => {
    told = signal;
    return forever();
  }, 1_000);
  const refused = messageOf(calling);
  await vi.advanceTimersByTimeAsync(999);
  expect(told?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await refused).toBe('it took longer than 1000 ms');
  expect(told?.aborted).toBe(true);
});

test('a call is not waited for once its caller stops, and not begun afterwards', async () => {
  const stopping = new AbortController();
  const call = vi.fn(forever);
  const refused = messageOf(inTime(call, 1_000, stopping.signal));
  stopping.abort(new Error('stopping'));
  expect(await refused).toBe('stopping');
  await expect(inTime(call, 1_000, stopping.signal)).rejects.toThrow('stopping');
  expect(call).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});
