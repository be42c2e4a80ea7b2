import { afterEach, expect, test, vi } from 'vitest';
import { Turns, type TurnsOptions, type Worker } from '#functions/watch/pacing/turns.ts';
import { settle } from '#test/unit/functions/watch/fakes.ts';

afterEach(() => vi.useRealTimers());

test('work is done at once while there is time, and then in order, after everything else of the process', async () => {
  const { turns, worker, done } = world();
  turns.take(worker('a', 2));
  turns.take(worker('b', 2));
  const waiting = worker('c', 3);
  turns.take(waiting);
  turns.take(waiting);
  turns.take(worker('d', 3));
  turns.take(worker('e', 3));
  expect(done).toEqual(['a', 'b']);
  setImmediate(() => done.push('others'));
  await settle();
  expect(done).toEqual(['a', 'b', 'c', 'd', 'others', 'e']);
});

test('who has more to do than there is time for goes on behind those that waited', async () => {
  const { turns, worker, done, spend } = world();
  let left = 3;
  const long: Worker = {
    turn() {
      while (!turns.isOver && left > 0) {
        left -= 1;
        spend('long', 4);
      }
      if (left > 0) turns.take(long);
    },
  };
  turns.take(long);
  turns.take(worker('short', 4));
  await settle();
  expect(done).toEqual(['long', 'long', 'short', 'long']);
});

test('where the clock stands still while code runs, a turn ends after so much work', async () => {
  const { turns, done } = world();
  let left = 2_500;
  const long: Worker = {
    turn() {
      let pieces = 0;
      for (; !turns.isOver && left > 0; pieces += 1) left -= 1;
      done.push(pieces < 1_100 ? 'a part' : 'all');
      if (left > 0) turns.take(long);
    },
  };
  turns.take(long);
  await settle();
  expect(left).toBe(0);
  expect(done).toEqual(['a part', 'a part', 'a part']);
});

test('while some wait, nobody works for as long as the work before took, also not who comes meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate'] });
  const { turns, worker, done } = world({ restPerMs: 1 });
  for (const name of ['a', 'b']) turns.take(worker(name, 5));
  await vi.advanceTimersByTimeAsync(4);
  turns.take(worker('c', 1));
  expect(done).toEqual(['a']);
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toEqual(['a', 'b']);
  await vi.advanceTimersByTimeAsync(6);
  expect(done).toEqual(['a', 'b', 'c']);
  turns.take(worker('d', 1));
  expect(done).toEqual(['a', 'b', 'c', 'd']);
});

function world(options: Pick<TurnsOptions, 'restPerMs'> = {}) {
  let nowMs = 0;
  const done: string[] = [];
  const turns = new Turns({ ...options, nowMs: () => nowMs });
  return { turns, done, spend, worker: (name: string, ms: number): Worker => ({ turn: () => spend(name, ms) }) };

  function spend(name: string, ms: number): void {
    nowMs += ms;
    done.push(name);
  }
}
