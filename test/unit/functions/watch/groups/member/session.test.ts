import { expect, test } from 'vitest';

import { ORIGIN, PositionExpired } from '#core/ports/event-log.ts';
import { Turns } from '#functions/watch/pacing/turns.ts';
import { settle } from '#test/unit/functions/watch/fakes.ts';
import { assigned, deadLetter, laneOfSeq, STREAM, testMember } from '#test/unit/functions/watch/groups/member.ts';

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

test('an event that was delivered too often is parked, also while a dead letter of its lane is delivered again', async () => {
  const { session, log, sent, parked, deadLetters } = testMember();
  log.fill(STREAM, 1);
  const lane = laneOfSeq(1);
  deadLetters.push(deadLetter(7n, lane));
  const deliveredBefore = Array.from({ length: 16 }, () => 1n);
  session.take([assigned(lane, { deliveredBefore, retries: [{ id: 7n, fence: 1n }] })], await log.ranges([STREAM]));
  await settle();
  expect([sent, parked]).toEqual([['ADDED dead letter 7'], [1n]]);
});

test('a dead letter that is on its way is not sent again when its lane begins anew, but once it is asked for again', async () => {
  const { session, log, sent, deadLetters } = testMember();
  const ranges = await log.ranges([STREAM]);
  const take = async (laneFence: bigint, fence: bigint): Promise<void> => {
    const lanes = [assigned(3, { fence: laneFence, retries: [{ id: 7n, fence }] })];
    session.lanes.drop(lanes);
    session.take(lanes, ranges);
    await settle();
  };
  deadLetters.push(deadLetter(7n, 3));
  await take(1n, 1n);
  // Asked before it was delivered, and behind that.
  await take(1n, 1n);
  await take(2n, 2n);
  expect(sent).toEqual(['ADDED dead letter 7']);
  expect(session.lanes.unackedCount).toBe(1);
  session.deadLetterDone({ id: 7n, fence: 1n });
  expect(session.lanes.unackedCount, 'another delivery').toBe(1);
  // Refused at another process, and asked for again.
  deadLetters.splice(0, 1, deadLetter(7n, 3, { fence: 5n }));
  await take(2n, 4n);
  expect(sent).toEqual(['ADDED dead letter 7', 'ADDED dead letter 7']);
  session.deadLetterDone({ id: 7n, fence: 5n });
  expect(session.lanes.unackedCount).toBe(0);
});

test('no dead letter is sent on a lane that another member waits for, nor on one that has begun anew', async () => {
  const { session, log, sent, asked, deadLetters } = testMember();
  const ranges = await log.ranges([STREAM]);
  const lanes = [
    assigned(3, { isWanted: true, retries: [{ id: 7n, fence: 1n }] }),
    assigned(4, { retries: [{ id: 8n, fence: 1n }] }),
  ];
  deadLetters.push(deadLetter(7n, 3), deadLetter(8n, 4));
  session.take(lanes, ranges);
  session.lanes.begunAnew({ group: 1n, stream: STREAM, lane: 4, fence: 1n });
  await settle();
  expect([asked.flat().length, sent]).toEqual([2, []]);
});

test('a dead letter of another tenant is not sent: the member ends, and it is counted', async () => {
  const { session, log, sent, violations, deadLetters } = testMember();
  deadLetters.push(deadLetter(7n, 3, { tenant: 'stranger' }));
  session.take([assigned(3, { retries: [{ id: 7n, fence: 1n }] })], await log.ranges([STREAM]));
  await settle();
  expect([sent, violations]).toEqual([['ERROR InternalError'], [STREAM]]);
});

test('a lane is not given up while a dead letter of it is unanswered', async () => {
  const { session, log, deadLetters } = testMember();
  const ranges = await log.ranges([STREAM]);
  deadLetters.push(deadLetter(7n, 3));
  session.take([assigned(3, { retries: [{ id: 7n, fence: 1n }] })], ranges);
  await settle();
  session.take([assigned(3, { isWanted: true, retries: [{ id: 7n, fence: 2n }] })], ranges);
  expect(session.lanes.takeRested()).toEqual([]);
  session.deadLetterDone({ id: 7n, fence: 2n });
  expect(session.lanes.takeRested()).toHaveLength(1);
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

test('what dead letters kept from being sent is sent once one is acked', async () => {
  const { session, log, sent, deadLetters } = testMember({ window: 1 });
  log.fill(STREAM, 1);
  const lane = laneOfSeq(1);
  const ids = Array.from({ length: 64 }, (_, index) => BigInt(index + 1));
  deadLetters.push(...ids.map((id) => deadLetter(id, lane)));
  session.take([assigned(lane, { retries: ids.map((id) => ({ id, fence: 1n })) })], await log.ranges([STREAM]));
  await settle();
  expect(sent).toEqual(ids.map((id) => `ADDED dead letter ${id}`));
  session.deadLetterDone({ id: 5n, fence: 2n });
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
  const turns = new Turns({ nowMs: () => (nowMs += 0.25) });
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
