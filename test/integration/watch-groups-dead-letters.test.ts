import { beforeEach, expect, test } from 'vitest';
import type { AssignedLane, DeadLetter, JoinRequest, Membership } from '#core/ports/watch-groups.ts';
import { useGroupWorld, newGroup } from '#test/support/watch-groups.ts';

const ACT = { by: 'carol', reason: 'the consumer was fixed' };

const world = useGroupWorld(['acme']);
let request: JoinRequest;
let joined: Membership;
let lane: AssignedLane;

beforeEach(async () => {
  request = newGroup(['acme']);
  joined = await world.join(request);
  lane = await world.firstLane(joined.member);
});

function park(seq: bigint, of: AssignedLane = lane, event: string = `{"id":"event-${seq}"}`): Promise<boolean> {
  return world.groups.park(of, {
    point: { seq, position: seq * 10n },
    tenant: 'acme',
    event,
    type: 'MODIFIED',
    attempts: 16,
    reason: 'delivered 16 times',
  });
}

async function letters(): Promise<readonly DeadLetter[]> {
  return (await world.groups.deadLetters(joined.group, 0n, 100)).letters;
}

/** The only one. */
async function parked(seq: bigint = 5n): Promise<DeadLetter> {
  await park(seq);
  const letter = (await letters()).find(({ point }) => point.seq === seq);
  if (!letter) throw new Error('nothing is parked');
  return letter;
}

async function actions(): Promise<unknown> {
  return world.sql`select deed, done_by, reason from plumbline.group_action
    where watch_group = ${String(joined.group)}::bigint order by id`;
}

test('a parked event is kept as it was, and its lane goes on behind it', async () => {
  expect(await park(5n)).toBe(true);
  expect(await letters()).toEqual([
    {
      id: expect.any(BigInt),
      stream: lane.stream,
      lane: lane.lane,
      point: { seq: 5n, position: 50n },
      tenant: 'acme',
      event: '{"id":"event-5"}',
      type: 'MODIFIED',
      attempts: 16,
      reason: 'delivered 16 times',
      parkedAt: expect.any(Date),
    },
  ]);
  expect((await world.firstLane(joined.member)).confirmed).toEqual({ seq: 5n, position: 50n });
  expect((await world.groups.get(request))?.deadLetters).toBe(1);
});

test('nobody parks an event of a lane that was taken from it, nor one that was confirmed meanwhile', async () => {
  await world.groups.nack(request, [{ ...lane, point: { seq: 5n, position: 50n }, delayMs: 0 }]);
  expect(await park(5n)).toBe(false);
  const held = await world.firstLane(joined.member);
  await world.groups.ack(request, [{ ...held, point: { seq: 5n, position: 50n } }]);
  expect(await park(5n, held)).toBe(true);
  expect(await letters()).toEqual([]);
});

test('dead letters come in pages of bounded size, with at least one each', async () => {
  const event = JSON.stringify({ text: 'x'.repeat(1_500_000) });
  for (let seq = 1n; seq <= 5n; seq += 1n) await park(seq, lane, event);
  const pages: (readonly bigint[])[] = [];
  let after = 0n;
  for (let more = true; more;) {
    const page = await world.groups.deadLetters(joined.group, after, pages.length === 0 ? 1 : 10);
    pages.push(page.letters.map(({ point }) => point.seq));
    after = page.letters.at(-1)?.id ?? after;
    ({ more } = page);
  }
  expect(pages).toEqual([[1n], [2n, 3n, 4n], [5n]]);
});

test('a retry comes with the lane, and its ack forgets the event', async () => {
  const letter = await parked();
  expect((await world.firstLane(joined.member)).retries).toEqual([]);
  expect(await world.groups.retryDeadLetter(joined.group, letter.id, ACT)).toBe(true);
  expect((await world.firstLane(joined.member)).retries).toEqual([letter]);
  const ref = [{ group: joined.group, id: letter.id }];
  expect(await world.groups.ackDeadLetters({ ...request, owner: 'stranger' }, ref)).toEqual(['Unknown']);
  expect(await world.groups.ackDeadLetters(request, ref)).toEqual(['Acked']);
  expect(await world.groups.ackDeadLetters(request, ref)).toEqual(['Duplicate']);
  expect(await letters()).toEqual([]);
  expect(await actions()).toEqual([
    { deed: `retry of event 5 of stream ${lane.stream}`, done_by: ACT.by, reason: ACT.reason },
  ]);
});

test('a refused retry stays parked with one attempt more, until it is asked for again', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const ref = [{ group: joined.group, id: letter.id }];
  expect(await world.groups.nackDeadLetters(request, ref)).toEqual(['Acked']);
  expect((await world.firstLane(joined.member)).retries).toEqual([]);
  expect(await letters()).toEqual([{ ...letter, attempts: 17 }]);
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  expect((await world.firstLane(joined.member)).retries.length).toBe(1);
});

test('a skipped event is gone, and the reason is kept', async () => {
  const letter = await parked();
  expect(await world.groups.skipDeadLetter(joined.group, letter.id, ACT)).toBe(true);
  expect(await world.groups.skipDeadLetter(joined.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.retryDeadLetter(joined.group, letter.id, ACT)).toBe(false);
  expect(await letters()).toEqual([]);
  expect(await actions()).toEqual([
    { deed: `skip of event 5 of stream ${lane.stream}`, done_by: ACT.by, reason: ACT.reason },
  ]);
});

test('dead letters of one group cannot be reached through another', async () => {
  const letter = await parked();
  const other = await world.join(newGroup(['acme']));
  expect(await world.groups.retryDeadLetter(other.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.skipDeadLetter(other.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.ackDeadLetters(request, [{ group: other.group, id: letter.id }])).toEqual(['Duplicate']);
  expect((await letters()).length).toBe(1);
});

test('an event that is delivered again after a seek, and parked again, is parked once', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  await world.groups.seek(joined.group, 'earliest', ACT);
  await park(5n, await world.firstLane(joined.member));
  expect(await letters()).toEqual([{ ...letter, parkedAt: expect.any(Date) }]);
  expect((await world.firstLane(joined.member)).retries).toEqual([]);
});
