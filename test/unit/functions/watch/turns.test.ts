import { expect, test } from 'vitest';
import { Turns } from '#functions/watch/turns.ts';
import { settle } from '#test/unit/functions/watch/fakes.ts';

test('work is done at once while there is time, and then in order, after everything else of the process', async () => {
  const { turns, spend, done } = world();
  turns.take(() => spend('a', 2));
  turns.take(() => spend('b', 2));
  const waiting = (): void => spend('c', 3);
  turns.take(waiting);
  turns.take(waiting);
  turns.take(() => spend('d', 3));
  turns.take(() => spend('e', 3));
  expect(done).toEqual(['a', 'b']);
  setImmediate(() => done.push('others'));
  await settle();
  expect(done).toEqual(['a', 'b', 'c', 'd', 'others', 'e']);
});

test('who has more to do than there is time for goes on behind those that waited', async () => {
  const { turns, spend, done } = world();
  let left = 3;
  turns.take(long);
  turns.take(() => spend('short', 4));
  await settle();
  expect(done).toEqual(['long', 'long', 'short', 'long']);

  function long(): void {
    while (!turns.isOver && left > 0) {
      left -= 1;
      spend('long', 4);
    }
    if (left > 0) turns.take(long);
  }
});

function world() {
  let nowMs = 0;
  const done: string[] = [];
  const turns = new Turns(() => nowMs);
  return {
    turns,
    done,
    spend(name: string, ms: number): void {
      nowMs += ms;
      done.push(name);
    },
  };
}
