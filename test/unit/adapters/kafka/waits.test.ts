import { expect, test } from 'vitest';
import { Alarm, Growth } from '#adapters/kafka/client/alarm.ts';
import { firstOf } from '#adapters/kafka/client/stagger.ts';
import { createTurns } from '#adapters/kafka/client/turns.ts';

const LONG_MS = 60_000;

test('a ring ends a wait, also one that begins later; but only one', async () => {
  const alarm = new Alarm();
  const waiting = alarm.wait(LONG_MS);
  alarm.ring();
  await waiting;
  alarm.ring();
  alarm.ring();
  await alarm.wait(LONG_MS);
  const third = alarm.wait(LONG_MS);
  expect(await Promise.race([third.then(() => 'ended'), Promise.resolve('waits')])).toBe('waits');
  alarm.ring();
  await third;
});

test('a wait without a ring ends by itself', async () => {
  const startedAtMs = performance.now();
  await new Alarm().wait(20);
  expect(performance.now() - startedAtMs).toBeGreaterThan(15);
});

test('waits grow to a bound, and begin anew', () => {
  const growth = new Growth(50, 300);
  expect(Array.from({ length: 5 }, () => growth.next())).toEqual([50, 100, 200, 300, 300]);
  growth.reset();
  expect(growth.next()).toBe(50);
});

test('of work only so much is done at once, in order, whatever fails', async () => {
  const turns = createTurns(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const works = ends.map(({ promise }, nth) =>
    turns(async () => {
      begun.push(nth);
      await promise;
    }),
  );
  await settle();
  expect(begun).toEqual([0, 1]);
  ends[1]!.reject(new Error('failed'));
  await expect(works[1]).rejects.toThrow('failed');
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.allSettled(works);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test('of ways to the same end, one that hangs is not waited for, and what it gives later is discarded', async () => {
  const hanging = Promise.withResolvers<string>();
  const discarded: string[] = [];
  const first = firstOf([() => hanging.promise, async () => 'second'], 10, (value) => discarded.push(value));
  expect(await first).toBe('second');
  hanging.resolve('late');
  await settle();
  expect(discarded).toEqual(['late']);
});

test('of ways to the same end, the next is tried at once when one fails, and the last failure is told', async () => {
  const tried: string[] = [];
  const failing = (name: string) => async (): Promise<never> => {
    tried.push(name);
    throw new Error(name);
  };
  await expect(firstOf([failing('a'), failing('b')], LONG_MS, () => undefined)).rejects.toThrow('b');
  expect(tried).toEqual(['a', 'b']);
  expect(await firstOf([failing('c'), async () => 'found', failing('d')], LONG_MS, () => undefined)).toBe('found');
  expect(tried).toEqual(['a', 'b', 'c']);
});

async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}
