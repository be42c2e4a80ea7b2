import { expect, test } from 'vitest';

import { FrameBytes } from '#functions/watch/frames.ts';
import { type Batch, MissedBatches } from '#functions/watch/backlog/missed-batches.ts';

const feed = {};

function batch(text: string): Batch {
  return { end: { seq: 1n, position: 1n }, bytes: new FrameBytes(text) };
}

/** Asks, and tells whether it had to be made. */
async function isMade(
  missed: MissedBatches,
  key: string,
  made: Batch = batch(''),
  of: object = feed,
): Promise<boolean> {
  let calls = 0;
  await missed.of(of, key, async () => {
    calls += 1;
    return made;
  });
  return calls === 1;
}

test('a batch is made once for all who ask for it, while it is made and later, and for each feed on its own', async () => {
  const missed = new MissedBatches();
  const asked = [isMade(missed, 'a'), isMade(missed, 'a'), isMade(missed, 'b'), isMade(missed, 'a', batch(''), {})];
  expect(await Promise.all(asked)).toEqual([true, false, true, true]);
  expect(await isMade(missed, 'a')).toBe(false);
});

test('what is not there yet, and what failed, is looked for again', async () => {
  const missed = new MissedBatches();
  expect(await isMade(missed, 'a', { end: undefined, bytes: undefined })).toBe(true);
  expect(await isMade(missed, 'a')).toBe(true);
  await expect(missed.of(feed, 'b', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await isMade(missed, 'b')).toBe(true);
});

test('it keeps what was asked for lately, within its bytes', async () => {
  const missed = new MissedBatches(50_000);
  const large = batch('x'.repeat(10_000));
  for (const key of ['a', 'b', 'a', 'c']) await isMade(missed, key, large);
  expect(await isMade(missed, 'a', large)).toBe(false);
  expect(await isMade(missed, 'b', large)).toBe(true);
  // Larger than all of it.
  await isMade(missed, 'd', batch('x'.repeat(100_000)));
  expect(await isMade(missed, 'd', large)).toBe(true);
});
