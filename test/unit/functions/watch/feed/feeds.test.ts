import { expect, test } from 'vitest';
import type { StatusError } from '#core/status-error.ts';
import type { Feed, FeedWatcher } from '#functions/watch/feed/feed.ts';
import { createFeeds, type Feeds } from '#functions/watch/feed/feeds.ts';
import { Tails } from '#functions/watch/tail/tails.ts';
import { Turns } from '#functions/watch/pacing/turns.ts';
import {
  type FakeDirectory,
  fakeDirectory,
  fakeLog,
  type FakeLog,
  plainCursors,
  settle,
} from '#test/unit/functions/watch/fakes.ts';

const MAX = 256;

test('a change of the directory is one query for all feeds, of no more tenants than they have', async () => {
  const { feeds, directory } = world(1, 2, 3);
  for (const id of [1, 2]) await feeds.get('public', [`t${id}`]);
  directory.queries.length = 0;
  feeds.refresh();
  await settle();
  expect(directory.queries).toEqual([{ scope: { tenants: ['t1', 't2'] }, alsoIds: [1n, 2n] }]);
  await feeds.get('public', '*');
  directory.queries.length = 0;
  feeds.refresh();
  await settle();
  expect(directory.queries).toEqual([{ scope: { tenants: '*' }, alsoIds: [1n, 2n, 3n] }]);
});

test('many watchers that know of an unknown stream share their look at the directory', async () => {
  const { feeds, directory } = world(1);
  const feed = await feeds.get('public', '*');
  directory.queries.length = 0;
  await Promise.all(Array.from({ length: 100 }, () => feed.placeOf(vectorOf({ 1: 0, 9: 4 }))));
  expect(directory.queries.filter(({ alsoIds }) => alsoIds.includes(1n))).toHaveLength(1);
});

test('each feed opens what is new of its own tenants alone, and closed streams only for who asked', async () => {
  const { feeds, directory } = world(1, 2);
  const [one, all] = [await feeds.get('public', ['t1', 't7']), await feeds.get('public', '*')];
  directory.open(7, 8);
  directory.close(9, { drained: false });
  await Promise.all([one.refresh(), all.refresh([9n])]);
  expect([...one.vector.keys()]).toEqual([1n, 7n]);
  expect([...all.vector.keys()]).toEqual([1n, 2n, 7n, 8n, 9n]);
});

test(`one of ${MAX} tenants is replaced by another, and nobody's watch ends`, async () => {
  const { feeds, directory } = world(...upTo(MAX));
  const feed = await feeds.get('public', '*');
  const ended = endsOf(feed);
  directory.open(MAX + 1);
  directory.close(1);
  await feed.refresh();
  expect(ended).toEqual([]);
  expect(feed.vector.has(1n)).toBe(false);
  expect(feed.vector.has(BigInt(MAX + 1))).toBe(true);
});

test(`the one that replaces it waits until the last event of the other is published`, async () => {
  const { feeds, directory } = world(...upTo(MAX));
  const feed = await feeds.get('public', '*');
  const ended = endsOf(feed);
  directory.open(MAX + 1);
  directory.close(1, { drained: false });
  await feed.refresh();
  expect([ended, feed.vector.has(1n), feed.vector.size]).toEqual([[], true, MAX]);
  directory.close(1);
  await feed.refresh();
  expect([ended, feed.vector.has(BigInt(MAX + 1)), feed.vector.size]).toEqual([[], true, MAX]);
});

test(`with ${MAX + 1} tenants the watches of all end with 400`, async () => {
  const { feeds, directory } = world(...upTo(MAX));
  const feed = await feeds.get('public', '*');
  const ended = endsOf(feed);
  directory.open(MAX + 1);
  await feed.refresh();
  expect(ended.map(({ reason }) => reason)).toEqual(['BadRequest']);
});

test('a watcher that begins behind the end of a tenant does not get the history of that one', async () => {
  const { feeds, log, directory } = world(1, 2);
  log.fill(1n, 5);
  log.fill(2n, 5);
  const feed = await feeds.get('public', '*');
  directory.close(2, { drained: false });
  directory.open(3);
  log.fill(3n, 2);
  expect(await feed.placeOf(vectorOf({ 1: 5 }))).toEqual(vectorOf({ 1: 5, 2: 5 }));
  expect([...feed.vector.keys()]).toEqual([1n, 2n, 3n]);
});

test('a feed that is stopped while it opens a stream is not attached to it', async () => {
  const { feeds, log, directory } = world(1);
  const feed = await feeds.get('public', '*');
  directory.open(2);
  const held = Promise.withResolvers<void>();
  directory.beforeList = () => held.promise;
  const refreshed = feed.refresh();
  await settle();
  feeds.stop();
  held.resolve();
  await refreshed;
  log.fill(2n, 1);
  const { reads } = log;
  log.tell(2n);
  await settle();
  expect(log.reads).toBe(reads);
  expect(() => feed.assertRunning()).toThrow('stopping');
});

test('over many streams the vectors of single events count as what the ring holds', async () => {
  const { feeds, log } = world(...upTo(MAX));
  const feed = await feeds.get('public', '*');
  for (let seq = 1; seq <= 1000; seq += 1) {
    log.fill(1n, seq);
    feed.onEvents(1n, (await log.read(1n, pointAt(seq - 1), { maxCount: 1, maxBytes: 1 })).events);
  }
  const held = feed.ring.endIndex - feed.ring.firstIndex;
  expect(held).toBeGreaterThan(100);
  expect(held).toBeLessThan(400);
  const last = feed.ring.at(feed.ring.endIndex - 1);
  expect(last.vector).toBe(feed.vector);
});

test('inside a batch each entry knows its place, and the last one shares that of the feed', async () => {
  const { feeds, log } = world(1, 2);
  const feed = await feeds.get('public', '*');
  log.fill(1n, 3);
  feed.onEvents(1n, (await log.read(1n, pointAt(0), { maxCount: 3, maxBytes: 1 })).events);
  expect([0, 1, 2].map((index) => plainCursors.seal(feed.ring.at(index).vector, 'public', '*'))).toEqual([
    '1:1,2:0',
    '1:2,2:0',
    '1:3,2:0',
  ]);
  expect(feed.ring.at(2).vector).toBe(feed.vector);
});

function world(...ids: readonly number[]): { feeds: Feeds; log: FakeLog; directory: FakeDirectory } {
  const log = fakeLog();
  const directory = fakeDirectory(...ids);
  const deps = {
    log,
    streams: directory,
    cursors: plainCursors,
    onIsolationViolation: fail,
    onFilterError: () => fail('a filter failed'),
    onError: fail,
  };
  const tails = new Tails(deps);
  return { feeds: createFeeds({ ...deps, tails, turns: new Turns() }, 30_000), log, directory };
}

function fail(error: unknown): void {
  throw error instanceof Error ? error : new Error(`told of ${String(error)}`);
}

function endsOf(feed: Feed): StatusError[] {
  const ended: StatusError[] = [];
  const watcher: FeedWatcher = { pump: () => undefined, end: (error) => void ended.push(error) };
  feed.watchers.add(watcher);
  return ended;
}

function vectorOf(seqs: Readonly<Record<number, number>>): Map<bigint, { seq: bigint; position: bigint }> {
  return new Map(Object.entries(seqs).map(([id, seq]) => [BigInt(id), pointAt(seq)]));
}

function pointAt(seq: number): { seq: bigint; position: bigint } {
  return { seq: BigInt(seq), position: BigInt(seq) };
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
