import { expect, test } from 'vitest';
import { Slots } from '#functions/watch/pacing/slots.ts';

test('calls beyond the slots wait in order', async () => {
  const slots = new Slots(1);
  const made: number[] = [];
  const held = Promise.withResolvers<void>();
  const calls = [1, 2, 3].map((n) => slots.run(() => make(n)));
  expect(made).toEqual([1]);
  held.resolve();
  await Promise.all(calls);
  expect(made).toEqual([1, 2, 3]);

  function make(n: number): Promise<void> {
    made.push(n);
    return held.promise;
  }
});

test('a call whose caller stops while it waits is not made, and takes no slot', async () => {
  const slots = new Slots(1);
  const held = Promise.withResolvers<void>();
  const first = slots.run(() => held.promise);
  const stopped = new AbortController();
  let wasMade = false;
  const waiting = slots.run(async () => void (wasMade = true), stopped.signal);
  stopped.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(slots.run(async () => void (wasMade = true), stopped.signal)).rejects.toThrow('stopped');
  held.resolve();
  await first;
  expect(wasMade).toBe(false);
  expect(await slots.run(async () => 'free')).toBe('free');
});
