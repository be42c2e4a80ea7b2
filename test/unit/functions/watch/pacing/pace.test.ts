import { expect, test } from 'vitest';
import type { ResourceStore } from '#core/ports/resources.ts';
import { Pace, type Stint } from '#functions/watch/pacing/pace.ts';
import { fakeWatch } from '#test/unit/functions/watch/fake-watch.ts';
import { fakeDirectory, fakeLog, settle } from '#test/unit/functions/watch/fakes.ts';

test('who has much to read beside live watchers rests three times as long as each part took', async () => {
  const { pace, clock, rests } = world();
  pace.live();
  const stint = pace.stint(() => 0);
  await readMuch(stint);
  expect(stint.isSlow).toBe(true);
  for (const tookMs of [2, 10, 5_000]) {
    const beganAtMs = clock.nowMs;
    clock.nowMs += tookMs;
    pace.live();
    await stint.rest(beganAtMs);
  }
  expect(rests).toEqual([6, 30, 250]);
});

test('who has missed little, or has nobody to delay, does not rest', async () => {
  const { pace, clock, rests } = world();
  const alone = pace.stint(() => 0);
  await readMuch(alone);
  expect(alone.isSlow).toBe(false);
  pace.live();
  expect(alone.isSlow).toBe(true);
  const short = pace.stint(() => 0);
  await short.run(250, async () => undefined);
  expect(short.isSlow).toBe(false);
  clock.nowMs += 5_000;
  expect(alone.isSlow).toBe(false);
  for (const stint of [alone, short]) await stint.rest(clock.nowMs - 2);
  expect(rests).toEqual([]);
});

test('who does not come closer reads as fast as it can, until it does', async () => {
  const { pace } = world();
  pace.live();
  let grown = 0;
  const stint = pace.stint(() => grown);
  await readMuch(stint);
  expect(stint.isSlow).toBe(true);
  grown = 501;
  expect(stint.isSlow).toBe(false);
  await stint.run(2, async () => undefined);
  expect(stint.isSlow).toBe(true);
});

test('however many are far behind, three read at once beside live watchers', async () => {
  const { pace } = world();
  const held = Promise.withResolvers<void>();
  let reading = 0;
  const stints = Array.from({ length: 10 }, () => pace.stint(() => 0));
  for (const stint of stints) await readMuch(stint);
  const read = (): Promise<void> => {
    reading += 1;
    return held.promise;
  };
  const fast = stints[0]?.run(1, read);
  expect(reading, 'with nobody to delay').toBe(1);
  pace.live();
  const slow = stints.map((stint) => stint.run(1, read));
  await settle();
  expect(reading).toBe(4);
  held.resolve();
  await Promise.all([fast, ...slow]);
  expect(reading).toBe(11);
});

test('a watcher that is far behind reads in small parts beside one that is live, and in large ones without', async () => {
  const log = fakeLog();
  const { app } = fakeWatch({ log, streams: fakeDirectory(1), store: {} as ResourceStore });
  const counts: number[] = [];
  const { read } = log;
  log.read = async (stream, after, limits) => {
    counts.push(limits.maxCount);
    return read(stream, after, limits);
  };
  log.fill(1n, 2_000);
  await catchUp('types=ADDED');
  expect(Math.min(...counts)).toBe(250);

  counts.length = 0;
  const live = await app.request('/watch/v1/events');
  await settle();
  log.fill(1n, 2_001);
  log.tell(1n);
  await settle();
  await catchUp('types=ADDED,MODIFIED', 2_001);
  expect(counts.filter((count) => count === 250)).toHaveLength(4);
  expect(counts.filter((count) => count === 50)).toHaveLength(20);
  await live.body?.cancel();

  async function catchUp(query: string, last = 2_000): Promise<void> {
    const answer = await app.request(`/watch/v1/events?from=earliest&${query}`);
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text = text.slice(-50_000) + decoder.decode(chunk, { stream: true });
      if (text.includes(`"id":"1-${last}"`)) return;
    }
  }
});

/** More than what is read at once. */
async function readMuch(stint: Stint): Promise<void> {
  await stint.run(1_000, async () => undefined);
}

function world() {
  const clock = { nowMs: 10_000 };
  const rests: number[] = [];
  const pace = new Pace({
    nowMs: () => clock.nowMs,
    async sleep(ms) {
      rests.push(ms);
    },
  });
  return { pace, clock, rests };
}
