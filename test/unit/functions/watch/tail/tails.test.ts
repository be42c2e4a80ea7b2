import { expect, test } from 'vitest';
import type { StreamEvent } from '#core/event.ts';
import { ORIGIN, PositionExpired } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import { LogHole } from '#functions/watch/tail/dense.ts';
import type { Follower } from '#functions/watch/tail/tail.ts';
import { Tails } from '#functions/watch/tail/tails.ts';
import { fakeLog, type FakeLog, settle } from '#test/unit/functions/watch/fakes.ts';

const STREAM = 1n;

test('a follower that joins behind the tail gets each event once, whatever comes meanwhile', async () => {
  const { log, tails } = world();
  log.fill(STREAM, 600);
  const early = follower();
  await tails.follow(early, STREAM, pointAt(600));
  const late = follower();
  const joined = tails.follow(late, STREAM, ORIGIN);
  log.fill(STREAM, 700);
  log.tell(STREAM);
  await joined;
  await settle();
  expect(late.seqs).toEqual(upTo(700));
  expect(early.seqs).toEqual(upTo(700).slice(600));
});

test('a follower that joins while the last other one leaves is woken by what comes later', async () => {
  const { log, tails, first } = await followedWorld();
  const held = hold(log);
  const second = follower();
  const joined = tails.follow(second, STREAM, ORIGIN);
  tails.leave(first, STREAM);
  held.resolve();
  await joined;
  log.fill(STREAM, 4);
  log.tell(STREAM);
  await settle();
  expect(second.seqs).toEqual([1, 2, 3, 4]);
});

test('a follower that leaves while it joins gets nothing any more, and nothing is read for it', async () => {
  const { log, tails, first } = await followedWorld();
  const held = hold(log);
  const second = follower();
  const joined = tails.follow(second, STREAM, ORIGIN);
  tails.leave(second, STREAM);
  tails.leave(first, STREAM);
  held.resolve();
  await joined;
  log.fill(STREAM, 4);
  const { reads } = log;
  log.tell(STREAM);
  await settle();
  expect(second.seqs).toEqual([]);
  expect(log.reads).toBe(reads);
});

test('a join that fails leaves no tail behind: the next one begins where it asks to', async () => {
  const { log, tails, first } = await followedWorld();
  log.beforeRead = () => Promise.reject(new StatusError('ServiceUnavailable', 'away'));
  const failed = tails.follow(follower(), STREAM, ORIGIN);
  tails.leave(first, STREAM);
  await expect(failed).rejects.toThrow('away');
  log.beforeRead = () => undefined;
  const next = follower();
  await tails.follow(next, STREAM, ORIGIN);
  await settle();
  expect(next.seqs).toEqual([1, 2, 3]);
});

test('a hole in the log is reported, told to those who follow, and the tail goes on behind it', async () => {
  const { log, tails, errors } = world();
  const one = follower();
  await tails.follow(one, STREAM, ORIGIN);
  log.fill(STREAM, 4, { without: 2 });
  log.tell(STREAM);
  await settle();
  expect(errors).toEqual([expect.any(LogHole)]);
  expect(one.gaps).toEqual([4]);
  log.fill(STREAM, 5);
  log.tell(STREAM);
  await settle();
  expect(one.seqs).toEqual([5]);
});

test('a log that is away is nothing to report; what cannot be explained is', async () => {
  const { log, tails, errors } = world();
  const one = follower();
  await tails.follow(one, STREAM, ORIGIN);
  await settle();
  log.beforeRead = () => Promise.reject(new StatusError('ServiceUnavailable', 'away'));
  log.tell(STREAM);
  await settle();
  expect(errors).toEqual([]);
  const bug = new TypeError('not a function');
  log.beforeRead = () => Promise.reject(bug);
  log.tell(STREAM);
  await settle();
  expect(errors).toEqual([bug]);
  log.beforeRead = () => undefined;
  log.fill(STREAM, 1);
  // It pauses, so that what does not mend is not reported at the rate of the events.
  await expect.poll(() => one.seqs, { timeout: 5_000 }).toEqual([1]);
});

test('a follower that fails is told of the gap, and the others get their events', async () => {
  const { log, tails, errors } = world();
  const bug = new Error('bug');
  const broken = {
    ...follower(),
    onEvents: () => {
      throw bug;
    },
  };
  const sound = follower();
  await tails.follow(broken, STREAM, ORIGIN);
  await tails.follow(sound, STREAM, ORIGIN);
  log.fill(STREAM, 2);
  log.tell(STREAM);
  await settle();
  expect(sound.seqs).toEqual([1, 2]);
  expect(broken.gaps).toEqual([2]);
  expect(errors).toEqual([bug]);
});

test('a log that says that events are gone which the tail has passed is not asked again at once, and it is told', async () => {
  const { log, tails, errors } = world();
  log.fill(STREAM, 3);
  const one = follower();
  await tails.follow(one, STREAM, pointAt(3));
  await settle();
  log.beforeRead = () => Promise.reject(new PositionExpired(STREAM, pointAt(2)));
  const { reads } = log;
  log.tell(STREAM);
  await settle();
  await settle();
  expect(log.reads - reads).toBe(1);
  expect(errors).toHaveLength(1);
});

test('the recent events of a stream that nobody pulls any more take no room', async () => {
  const { log, tails } = world();
  const puller = follower();
  const tail = tails.pull(puller, STREAM, ORIGIN);
  log.fill(STREAM, 3);
  log.tell(STREAM);
  await settle();
  const { recent } = tail;
  expect(recent.events).toHaveLength(3);
  tails.leave(puller, STREAM);
  expect(recent.events).toHaveLength(0);
});

/** With a stream of three events, and one who follows it and has them all. */
async function followedWorld() {
  const made = world();
  made.log.fill(STREAM, 3);
  const first = follower();
  await made.tails.follow(first, STREAM, pointAt(3));
  await settle();
  return { ...made, first };
}

function world(): { log: FakeLog; tails: Tails; errors: unknown[] } {
  const log = fakeLog();
  const errors: unknown[] = [];
  const tails = new Tails({ log, onError: (error) => void errors.push(error) });
  return { log, tails, errors };
}

function follower(): Follower & { readonly seqs: number[]; readonly gaps: number[] } {
  const seqs: number[] = [];
  const gaps: number[] = [];
  return {
    seqs,
    gaps,
    onEvents: (_stream: bigint, events: readonly StreamEvent[]) =>
      void seqs.push(...events.map(({ seq }) => Number(seq))),
    onGap: (_stream, { seq }) => void gaps.push(Number(seq)),
  };
}

function hold(log: FakeLog): PromiseWithResolvers<void> {
  const held = Promise.withResolvers<void>();
  log.beforeRead = () => held.promise;
  return held;
}

function pointAt(seq: number): { seq: bigint; position: bigint } {
  return { seq: BigInt(seq), position: BigInt(seq) };
}

function upTo(seq: number): number[] {
  return Array.from({ length: seq }, (_, index) => index + 1);
}
