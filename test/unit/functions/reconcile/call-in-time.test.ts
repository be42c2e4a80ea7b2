import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { callInTime } from '#functions/reconcile/call-in-time.ts';
import { LeaseLost, PassSignal, PassTimedOut } from '#functions/reconcile/pass-signal.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const forever = (): Promise<never> => new Promise(() => undefined);

test('a function in time gives its value, and nothing is left running', async () => {
  expect(await callInTime(async () => 5, new PassSignal(60_000), 1_000)).toEqual({ settled: { value: 5 } });
  expect(vi.getTimerCount()).toBe(0);
});

test('what it throws is why there is no value', async () => {
  const error = new Error('no');
  const called = await callInTime(() => Promise.reject(error), new PassSignal(60_000), 1_000);
  expect(called).toEqual({ settled: { error } });
});

test('a function that ends when its time is up has failed for that reason, whatever it throws or gives then', async () => {
  for (const end of [() => 'late', () => Promise.reject(new Error('aborted'))]) {
    const passSignal = new PassSignal(60_000);
    const calling = callInTime(
      async () => {
        await new Promise((resolve) => passSignal.signal.addEventListener('abort', resolve));
        return end();
      },
      passSignal,
      1_000,
    );
    await vi.advanceTimersByTimeAsync(1_000);
    const { settled, hung } = await calling;
    expect(settled).toMatchObject({ error: { name: 'PassTimedOut' } });
    expect(hung).toBeUndefined();
  }
});

test('a function that does not end is given up after two seconds, and told when it ends at last', async () => {
  let end = (): void => undefined;
  const calling = callInTime(() => new Promise<void>((resolve) => (end = resolve)), new PassSignal(60_000), 1_000);
  await vi.advanceTimersByTimeAsync(2_999);
  const isOver = vi.fn();
  void calling.then(isOver);
  await vi.advanceTimersByTimeAsync(0);
  expect(isOver).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  const { settled, hung } = await calling;
  expect(settled).toMatchObject({ error: expect.any(PassTimedOut) });
  end();
  await expect(hung).resolves.toBeUndefined();
});

test('the reason that came first counts', async () => {
  const passSignal = new PassSignal(60_000);
  const calling = callInTime(forever, passSignal, 1_000);
  passSignal.end(new LeaseLost('lost'));
  await vi.advanceTimersByTimeAsync(2_000);
  expect((await calling).settled).toMatchObject({ error: { name: 'LeaseLost' } });
});

test('a lease that has run out by the own clock ends the pass at its next deed', () => {
  const passSignal = new PassSignal(100);
  passSignal.assertHeld();
  vi.advanceTimersByTime(101);
  expect(passSignal.isHeld).toBe(false);
  expect(() => passSignal.assertHeld()).toThrow(LeaseLost);
  expect(passSignal.signal.aborted).toBe(true);
});
