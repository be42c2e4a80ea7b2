import { beforeEach, expect, test } from 'vitest';
import type { Ack, AssignedLane, JoinRequest, Membership } from '#core/ports/watch-groups.ts';
import { useGroupWorld, type LaneRow, newGroup } from '#test/support/watch-groups.ts';

const world = useGroupWorld(['acme']);
let request: JoinRequest;
let joined: Membership;
let lane: AssignedLane;

beforeEach(async () => {
  request = newGroup(['acme']);
  joined = await world.join(request);
  lane = await world.firstLane(joined.member);
});

/** Of an event whose position is ten times its seq. */
function ack(seq: bigint, of: Pick<AssignedLane, 'group' | 'stream' | 'lane' | 'fence'> = lane): Ack {
  return { ...of, point: { seq, position: seq * 10n } };
}

async function row(): Promise<LaneRow | undefined> {
  return (await world.rows(joined.group)).find((each) => each.lane === lane.lane);
}

test('an ack confirms its lane up to the event, and no other lane', async () => {
  await world.groups.mark([{ ...lane, delivered: 6n }]);
  expect(await row()).toMatchObject({ deliveredSeq: 6n, isUnacked: true });
  expect(await world.groups.ack(request, [ack(5n)])).toEqual(['Acked']);
  expect(await row()).toMatchObject({ confirmedSeq: 5n, confirmedPosition: 50n, isUnacked: true });
  expect(await world.groups.ack(request, [ack(6n)])).toEqual(['Acked']);
  expect(await row()).toMatchObject({ confirmedSeq: 6n, isUnacked: false });
  const others = (await world.rows(joined.group)).filter((each) => each.lane !== lane.lane);
  expect(others.every(({ confirmedSeq }) => confirmedSeq === 0n)).toBe(true);
});

test('what was confirmed before is a duplicate, with whatever fence', async () => {
  await world.groups.ack(request, [ack(5n)]);
  expect(await world.groups.ack(request, [ack(5n), ack(1n), ack(3n, { ...lane, fence: 0n })])).toEqual([
    'Duplicate',
    'Duplicate',
    'Duplicate',
  ]);
  expect(await row()).toMatchObject({ confirmedSeq: 5n, confirmedPosition: 50n });
});

test('an ack of a fence that was replaced is refused and confirms nothing', async () => {
  await world.groups.ack(request, [ack(2n)]);
  await world.groups.nack(request, [{ ...ack(4n), delayMs: 0 }]);
  expect(await world.groups.ack(request, [ack(4n)])).toEqual(['Fenced']);
  expect(await row()).toMatchObject({ confirmedSeq: 2n, fence: lane.fence + 1n });
});

test('lanes of other owners, other audiences and no group at all are unknown', async () => {
  const acks = [ack(1n), { ...ack(1n), group: 999_999n }, { ...ack(1n), lane: 16 }, { ...ack(1n), stream: 999_999n }];
  expect(await world.groups.ack({ ...request, owner: 'stranger' }, acks)).toEqual(acks.map(() => 'Unknown'));
  expect(await world.groups.ack({ ...request, audience: 'private' }, acks)).toEqual(acks.map(() => 'Unknown'));
  expect(await world.groups.nack({ ...request, owner: 'stranger' }, [{ ...ack(1n), delayMs: 0 }])).toEqual(['Unknown']);
  expect(await world.groups.ack(request, acks)).toEqual(['Acked', 'Unknown', 'Unknown', 'Unknown']);
  await world.groups.delete(joined.group, { by: 'admin', reason: 'test' });
  expect(await world.groups.ack(request, [ack(1n)])).toEqual(['Unknown']);
});

test('a thousand acks of many lanes and groups are one call, answered in their order; the highest of a lane counts', async () => {
  const other = await world.join(newGroup(['acme']));
  const lanes = [...(await world.groups.lanes([joined.member])), ...(await world.groups.lanes([other.member]))];
  const acks = Array.from({ length: 1_000 }, (_, index) => {
    const of = lanes[(index * 7) % lanes.length];
    if (!of) throw new Error('no lanes');
    return ack(BigInt(1_000 - index), index % 10 === 3 ? { ...of, fence: of.fence + 5n } : of);
  });
  const results = await world.groups.ack(request, acks);
  expect(results).toEqual(acks.map((_, index) => (index % 10 === 3 ? 'Fenced' : 'Acked')));
  for (const of of [...(await world.rows(joined.group)), ...(await world.rows(other.group))]) {
    expect(of.confirmedPosition).toBe((of.confirmedSeq ?? 0n) * 10n);
    expect(of.confirmedSeq).toBeGreaterThan(900n);
  }
});

test('a refused event begins its lane anew with its member, after the delay', async () => {
  await world.groups.ack(request, [ack(2n)]);
  await world.groups.mark([{ ...lane, delivered: 8n }]);
  expect(await world.groups.nack(request, [{ ...ack(5n), delayMs: 60_000 }])).toEqual(['Acked']);
  const again = await world.firstLane(joined.member);
  expect(again).toMatchObject({ fence: lane.fence + 1n, confirmed: { seq: 2n }, deliveredBefore: [8n] });
  expect(again.pauseMs).toBeGreaterThan(30_000);
  expect(again.pauseMs).toBeLessThanOrEqual(60_000);
  expect(await world.groups.nack(request, [{ ...ack(5n), delayMs: 0 }])).toEqual(['Fenced']);
  expect(await world.groups.nack(request, [{ ...ack(1n, again), delayMs: 0 }])).toEqual(['Duplicate']);
});

test('of several nacks of a lane the longest delay counts, and it is one attempt', async () => {
  const nacks = [500, 60_000, 0].map((delayMs, index) => ({ ...ack(BigInt(index + 1)), delayMs }));
  expect(await world.groups.nack(request, nacks)).toEqual(['Acked', 'Acked', 'Acked']);
  const again = await world.firstLane(joined.member);
  expect(again.deliveredBefore).toEqual([3n]);
  expect(again.pauseMs).toBeGreaterThan(30_000);
});

test('attempts are counted by event: what is confirmed is forgotten, what was never delivered has none', async () => {
  for (const seq of [9n, 4n, 6n]) {
    const held = await world.firstLane(joined.member);
    await world.groups.nack(request, [{ ...ack(seq, held), delayMs: 0 }]);
  }
  const held = await world.firstLane(joined.member);
  const attemptOf = (seq: bigint, { deliveredBefore }: AssignedLane): number =>
    1 + deliveredBefore.filter((end) => end >= seq).length;
  expect([4n, 5n, 6n, 7n, 9n, 10n].map((seq) => attemptOf(seq, held))).toEqual([4, 3, 3, 2, 2, 1]);
  await world.groups.ack(request, [ack(5n, held)]);
  expect((await world.firstLane(joined.member)).deliveredBefore).toEqual([9n, 6n]);
});

test('marks never go back, and those of a replaced fence change nothing', async () => {
  await world.groups.mark([
    { ...lane, delivered: 8n, confirmed: { seq: 5n, position: 50n } },
    { ...lane, delivered: 7n, confirmed: { seq: 6n, position: 60n } },
  ]);
  await world.groups.mark([{ ...lane, delivered: 2n, confirmed: { seq: 1n, position: 10n } }]);
  await world.groups.mark([
    { ...lane, fence: lane.fence - 1n, delivered: 99n, confirmed: { seq: 99n, position: 990n } },
  ]);
  expect(await row()).toMatchObject({ deliveredSeq: 8n, confirmedSeq: 6n, confirmedPosition: 60n });
});

test('others see what was confirmed by the fence that they hold', async () => {
  await world.groups.ack(request, [ack(3n)]);
  const stale = { ...lane, lane: lane.lane + 1, fence: 0n };
  expect(await world.groups.confirmedPoints([lane, stale])).toEqual([
    {
      group: lane.group,
      stream: lane.stream,
      lane: lane.lane,
      fence: lane.fence,
      confirmed: { seq: 3n, position: 30n },
    },
  ]);
});
