import { expect, test } from 'vitest';

import { ORIGIN, PositionExpired } from '#core/ports/event-log.ts';
import type { DeadLetter } from '#core/ports/watch-groups.ts';
import { Turns } from '#functions/watch/turns.ts';
import { settle } from '#test/unit/functions/watch/fakes.ts';
import { assigned, laneOfSeq, STREAM, testMember } from '#test/unit/functions/watch/groups/member.ts';

test('a member whose lease ran out is sent nothing but the end, whoever notices first', async () => {
  const frozen = testMember({ leaseMs: 0 });
  frozen.log.fill(STREAM, 3);
  await frozen.takeAll();
  await settle();
  expect(frozen.sent).toEqual(['ERROR ServiceUnavailable']);
  expect([frozen.session.isClosed, frozen.session.endedBy]).toEqual([true, 'lease']);

  const idle = testMember({ leaseMs: 0 });
  idle.session.tick(performance.now());
  expect([idle.sent, idle.session.endedBy]).toEqual([['ERROR ServiceUnavailable'], 'lease']);
});

test('a renewed lease goes on', async () => {
  const { session, log, sent, takeAll } = testMember({ leaseMs: 0 });
  session.renewed(performance.now() + 60_000);
  log.fill(STREAM, 2);
  await takeAll();
  await settle();
  expect(sent).toEqual(['ADDED 1-1', 'ADDED 1-2']);
});

test('an event of another tenant is not sent: the member ends, and it is counted', async () => {
  const { session, log, sent, violations, takeAll } = testMember();
  log.fill(STREAM, 1);
  log.fill(STREAM, 2, { tenant: 'stranger' });
  await takeAll();
  await settle();
  expect(sent).toEqual(['ADDED 1-1', 'ERROR InternalError']);
  expect([violations, session.isClosed]).toEqual([[STREAM], true]);
});

test('what was collected is not sent behind the lease, even when the member ends for another reason', async () => {
  const { log, sent, takeAll } = testMember({ leaseMs: 0 });
  log.fill(STREAM, 1);
  log.fill(STREAM, 2, { tenant: 'stranger' });
  await takeAll();
  await settle();
  expect(sent).toEqual(['ERROR InternalError']);
});

test('an event that was delivered too often is parked, also while a parked one of its lane is delivered again', async () => {
  const { session, log, sent, parked } = testMember();
  log.fill(STREAM, 1);
  const lane = laneOfSeq(1);
  const letter: DeadLetter = {
    id: 7n,
    stream: STREAM,
    lane,
    tenant: 't1',
    point: { seq: 1n, position: 1n },
    event: '{"id":"letter"}',
    type: 'ADDED',
    attempts: 16,
    reason: 'a test',
    parkedAt: new Date(),
  };
  const deliveredBefore = Array.from({ length: 16 }, () => 1n);
  session.take([assigned(lane, { deliveredBefore, retries: [letter] })], await log.ranges([STREAM]));
  await settle();
  expect([sent, parked]).toEqual([['ADDED letter'], [1n]]);
});

test('of a lane that has begun anew nothing more is sent, whatever was asked before that', async () => {
  const { session, log, sent, takeAll } = testMember();
  log.fill(STREAM, 1);
  await takeAll();
  await settle();
  session.lanes.begunAnew({ group: 1n, stream: STREAM, lane: laneOfSeq(1), fence: 1n });
  log.fill(STREAM, 40);
  log.tell(STREAM);
  await takeAll();
  await settle();
  const others = Array.from({ length: 39 }, (_, index) => index + 2).filter((seq) => laneOfSeq(seq) !== laneOfSeq(1));
  expect(sent.toSorted()).toEqual(['ADDED 1-1', ...others.map((seq) => `ADDED 1-${seq}`)].toSorted());
});

test('a hole in the log is told to the lanes that are before it as a loss, and reported', async () => {
  const { log, sent, errors, takeAll } = testMember();
  log.fill(STREAM, 4, { without: 3 });
  await takeAll();
  await settle();
  await settle();
  expect(sent.filter((frame) => frame.startsWith('ADDED'))).toEqual(['ADDED 1-1', 'ADDED 1-2', 'ADDED 1-4']);
  expect(sent).toContain('BOOKMARK ResyncRequired');
  expect(String(errors[0])).toContain('seq 3 is missing');
});

test('a client that takes nothing is sent no more, and goes on where it was once it does', async () => {
  const { session, log, sent, sink, takeAll } = testMember();
  sink.bufferedBytes = 1024 * 1024;
  log.fill(STREAM, 3);
  await takeAll();
  await settle();
  expect(sent).toEqual([]);
  expect(session.blockedMs(performance.now() + 60_000)).toBeGreaterThan(30_000);
  sink.bufferedBytes = 0;
  session.onDrain();
  await settle();
  expect(sent).toEqual(['ADDED 1-1', 'ADDED 1-2', 'ADDED 1-3']);
});

test('of a lane that another member waits for nothing more is sent, and it is given up once all is acked', async () => {
  const { session, log, sent, takeAll } = testMember();
  log.fill(STREAM, 1);
  await takeAll();
  await settle();
  await takeAll({ isWanted: true });
  const held = { group: 1n, stream: STREAM, lane: laneOfSeq(1), fence: 1n };
  expect(session.lanes.takeRested()).not.toContainEqual(held);
  log.fill(STREAM, 20);
  log.tell(STREAM);
  await settle();
  expect(sent).toEqual(['ADDED 1-1']);
  session.confirm(held, { seq: 1n, position: 1n });
  expect(session.lanes.takeRested()).toEqual([held]);
});

test('what an ack of an older fence confirms is not taken for what was delivered with the new one', async () => {
  const { session, log, sent, takeAll } = testMember({ window: 1 });
  log.fill(STREAM, 1);
  await takeAll();
  await settle();
  session.lanes.drop([]);
  await takeAll({ fence: 2n, deliveredBefore: [1n] });
  await settle();
  expect(sent).toEqual(['ADDED 1-1', 'ADDED 1-1']);
  session.confirm({ group: 1n, stream: STREAM, lane: laneOfSeq(1), fence: 1n }, { seq: 1n, position: 1n });
  expect(session.lanes.unackedCount).toBe(1);
});

test('what a parked event that was delivered again kept from being sent is sent once it is acked', async () => {
  const { session, log, sent } = testMember({ window: 1 });
  log.fill(STREAM, 1);
  const lane = laneOfSeq(1);
  const retries = Array.from({ length: 64 }, (_, index): DeadLetter => ({
    id: BigInt(index),
    stream: STREAM,
    lane,
    tenant: 't1',
    point: ORIGIN,
    event: '{"id":"letter"}',
    type: 'ADDED',
    attempts: 16,
    reason: 'a test',
    parkedAt: new Date(),
  }));
  session.take([assigned(lane, { retries })], await log.ranges([STREAM]));
  await settle();
  expect(sent).toEqual(retries.map(() => 'ADDED letter'));
  session.letterDone(5n);
  await settle();
  expect(sent.at(-1)).toBe('ADDED 1-1');
});

test('a log that says again and again that a position is lost, and has nothing further, is not asked without a pause', async () => {
  const { session, log, takeAll } = testMember();
  log.fill(STREAM, 3);
  let lost = 0;
  log.beforeRead = (_, after) => {
    // The tail is further; and what would be asked without end fails below.
    if (after.seq > 0n || lost > 100) return;
    lost += 1;
    throw new PositionExpired(STREAM, ORIGIN);
  };
  await takeAll();
  for (let turn = 0; turn < 20; turn += 1) await settle();
  expect(lost).toBe(1);
  session.closed();
});

test('a member with much to deliver lets others go on in between, and delivers all of it', async () => {
  let nowMs = 0;
  // As if each look at the clock were a quarter of a millisecond of work.
  const turns = new Turns(() => (nowMs += 0.25));
  const { log, sent, takeAll } = testMember({ window: 1_024, turns });
  log.fill(STREAM, 100);
  await takeAll();
  const sentAtTurns: number[] = [];
  while (sent.length < 100 && sentAtTurns.length < 1_000) {
    await new Promise(setImmediate);
    sentAtTurns.push(sent.length);
  }
  const most = Math.max(...sentAtTurns.map((count, turn) => count - (sentAtTurns[turn - 1] ?? 0)));
  expect(sent).toEqual(Array.from({ length: 100 }, (_, index) => `ADDED 1-${index + 1}`));
  expect(most).toBeLessThanOrEqual(32);
});
