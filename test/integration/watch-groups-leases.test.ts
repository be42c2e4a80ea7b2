import { beforeEach, expect, test } from 'vitest';
import type { JoinRequest } from '#core/ports/watch-groups.ts';
import { untilLockWaits } from '#test/support/lock-waits.ts';
import { openConnection } from '#test/support/prepared-database.ts';
import { useGroupWorld, LONG_LEASE_MS, newGroup } from '#test/support/watch-groups.ts';

const world = useGroupWorld(['acme']);
let request: JoinRequest;

beforeEach(() => {
  request = newGroup(['acme']);
});

test('a member that was not renewed in time has lost everything, even before anybody noticed', async () => {
  const { member, group } = await world.join(request);
  expect(await world.renew(member)).toEqual([member]);
  await world.expire(member);
  expect(await world.groups.lanes([member])).toEqual([]);
  expect((await world.groups.get(request))?.members).toEqual([]);
  expect(await world.renew(member)).toEqual([]);
  expect((await world.rows(group)).length).toBe(16);
});

test('the lanes of a dead member go to the living with the next renewal, with higher fences', async () => {
  const { member: dead, group } = await world.join(request);
  const { member: living } = await world.join(request);
  await world.handOver(group);
  const before = await world.rows(group);
  await world.expire(dead);
  expect(await world.renew(living)).toEqual([living]);
  const after = await world.rows(group);
  expect(after.every((row) => row.member === living)).toBe(true);
  for (const [index, row] of after.entries()) {
    const wasDead = before[index]?.member === dead;
    expect(row.fence - (before[index]?.fence ?? 0n)).toBe(wasDead ? 1n : 0n);
  }
});

test('a renewal waits for nobody who settles the group, and settles nothing', async () => {
  const { member: dead, group } = await world.join(request);
  const { member: living } = await world.join(request);
  await world.handOver(group);
  await world.expire(dead);
  const before = await world.rows(group);
  const settling = openConnection(world.url);
  await settling.begin(async (transaction) => {
    await transaction`select from plumbline.watch_group where id = ${String(group)}::bigint for update`;
    await transaction`select from plumbline.group_lane where watch_group = ${String(group)}::bigint for update`;
    expect(await world.groups.renew([living], LONG_LEASE_MS)).toEqual([living]);
    expect(await world.groups.unsettled([group])).toEqual([group]);
  });
  await settling.end();
  expect(await world.rows(group)).toEqual(before);
  await world.groups.settle(group);
  expect(await world.groups.unsettled([group])).toEqual([]);
  expect(new Set((await world.rows(group)).map((row) => row.member))).toEqual(new Set([living]));
});

test('a lane that another should have is wanted, and stays with its holder until it is released', async () => {
  const { member: holder, group } = await world.join(request);
  const { member: newcomer } = await world.join(request);
  const held = await world.groups.lanes([holder]);
  expect(held.length).toBe(16);
  const wanted = held.filter(({ isWanted }) => isWanted);
  expect(wanted.length).toBe(8);
  expect(await world.groups.lanes([newcomer])).toEqual([]);
  await world.renew(holder, newcomer);
  expect(await world.groups.lanes([newcomer])).toEqual([]);
  await world.groups.release(wanted);
  const taken = await world.groups.lanes([newcomer]);
  expect(taken.map(({ lane }) => lane)).toEqual(wanted.map(({ lane }) => lane));
  expect(taken.map(({ fence }) => fence)).toEqual(wanted.map(({ fence }) => fence + 1n));
  expect((await world.rows(group)).filter(({ nextMember }) => nextMember !== null)).toEqual([]);
});

test('a wanted lane that was not released in time is taken, and its holder can confirm nothing on it', async () => {
  const { member: holder, group } = await world.join(request);
  const { member: newcomer } = await world.join(request);
  const lane = (await world.groups.lanes([holder])).find(({ isWanted }) => isWanted);
  if (!lane) throw new Error('nothing is wanted');
  await world.groups.mark([{ ...lane, delivered: 3n }]);
  await world.endPatience(group);
  await world.renew(holder);
  const taken = (await world.groups.lanes([newcomer])).find((each) => each.lane === lane.lane);
  expect(taken).toMatchObject({ fence: lane.fence + 1n, deliveredBefore: [3n] });
  expect(await world.groups.ack(request, [{ ...lane, point: { seq: 3n, position: 3n } }])).toEqual(['Fenced']);
});

test('a wish is withdrawn when the balance changes, and a release then changes nothing', async () => {
  const { member: holder, group } = await world.join(request);
  const { member: newcomer } = await world.join(request);
  const wanted = (await world.groups.lanes([holder])).filter(({ isWanted }) => isWanted);
  await world.groups.leave([newcomer], []);
  const before = await world.rows(group);
  expect(before.every(({ nextMember }) => nextMember === null)).toBe(true);
  await world.groups.release(wanted);
  expect(await world.rows(group)).toEqual(before);
});

test('a release with a replaced fence changes nothing', async () => {
  const { member: holder, group } = await world.join(request);
  await world.join(request);
  const wanted = (await world.groups.lanes([holder])).filter(({ isWanted }) => isWanted);
  const before = await world.rows(group);
  await world.groups.release(wanted.map((lane) => ({ ...lane, fence: lane.fence - 1n })));
  expect(await world.rows(group)).toEqual(before);
});

test('who leaves tells what it had delivered and confirmed; the rest is an attempt of the next member', async () => {
  const { member: leaver, group } = await world.join(request);
  const lane = await world.firstLane(leaver);
  await world.groups.leave([leaver], [{ ...lane, delivered: 9n, confirmed: { seq: 4n, position: 40n } }]);
  expect((await world.groups.get(request))?.idleSince).toBeInstanceOf(Date);
  const { member: next, group: same, isNew } = await world.join(request);
  expect({ same, isNew }).toEqual({ same: group, isNew: false });
  expect(await world.firstLane(next)).toMatchObject({
    confirmed: { seq: 4n, position: 40n },
    deliveredBefore: [9n],
    fence: lane.fence + 1n,
  });
  await world.groups.leave([leaver], []);
  expect((await world.groups.lanes([next])).length).toBe(16);
});

test('members that leave together have their group settled once', async () => {
  const { member: staying, group } = await world.join(request);
  const leaving = await Promise.all(Array.from({ length: 10 }, async () => (await world.join(request)).member));
  await world.handOver(group);
  const version = async (): Promise<bigint | undefined> => (await world.groups.versions([group])).get(group);
  const before = (await version()) ?? 0n;
  await world.groups.leave(leaving, []);
  expect(await version()).toBe(before + 1n);
  expect(new Set((await world.rows(group)).map((row) => row.member))).toEqual(new Set([staying]));
});

test('lanes of who left are not forgotten when it did not come to settle the group', async () => {
  const { member: staying, group } = await world.join(request);
  const { member: leaver } = await world.join(request);
  await world.handOver(group);
  await world.sql`select plumbline.leave_groups(array[${String(leaver)}::bigint], '{}', '{}', '{}', '{}', '{}', '{}', '{}')`;
  expect(await world.groups.lanes([leaver])).toEqual([]);
  expect(await world.renew(staying)).toEqual([staying]);
  expect(new Set((await world.rows(group)).map((row) => row.member))).toEqual(new Set([staying]));
});

test('the end of a group and a renewal of its members do not wait for each other', async () => {
  const { member: first, group } = await world.join(request);
  const { member: second } = await world.join(request);
  // In the table, the first lies behind the second.
  const [moved] = await world.sql<{ row: string }[]>`
    delete from plumbline.group_member m where id = ${String(first)}::bigint returning m::text as row`;
  await world.sql`insert into plumbline.group_member overriding system value
    select (${moved?.row ?? ''}::plumbline.group_member).*`;
  const renewing = openConnection(world.url);
  const { deletion } = await renewing.begin(async (transaction) => {
    await transaction`select from plumbline.group_member where id = ${String(first)}::bigint for no key update`;
    const started = world.groups.delete(group, { by: 'carol', reason: 'test' });
    await untilLockWaits(world.sql);
    await transaction`select from plumbline.group_member where id = ${String(second)}::bigint for no key update`;
    return { deletion: started };
  });
  await renewing.end();
  expect(await deletion).toBe(true);
});

test('nobody is told of a change that the version of the group does not show', async () => {
  const telling = await world.sql`select proname as name from pg_proc
    where pronamespace = 'plumbline'::regnamespace and prosrc like '%pg_notify(''plumbline_watch_group''%'`;
  expect(telling).toEqual([{ name: 'tell_of_groups' }]);
});

test('what is assigned, wanted or set changes the version of a group; acks, marks and renewals do not', async () => {
  const { member, group } = await world.join(request);
  let seen = -1n;
  const version = async (): Promise<bigint | undefined> => (await world.groups.versions([group])).get(group);
  const expectChange = async (): Promise<void> => {
    const now = await version();
    expect(now).toBeGreaterThan(seen);
    seen = now ?? seen;
  };
  await expectChange();
  const { member: other } = await world.join(request);
  await expectChange();
  await world.handOver(group);
  await expectChange();
  const lane = await world.firstLane(member);
  await world.groups.mark([{ ...lane, delivered: 9n }]);
  await world.groups.ack(request, [{ ...lane, point: { seq: 1n, position: 1n } }]);
  await world.renew(member, other);
  expect(await version()).toBe(seen);
  await world.groups.nack(request, [{ ...lane, point: { seq: 3n, position: 3n }, delayMs: 0 }]);
  await expectChange();
  const held = await world.firstLane(member);
  const letter = { tenant: 'acme', event: '{}', type: 'ADDED', attempts: 16, reason: 'test' };
  await world.groups.park(held, { ...letter, point: { seq: 3n, position: 3n } });
  const [parked] = (await world.groups.deadLetters(group, 0n, 1)).letters;
  await world.groups.retryDeadLetter(group, parked?.id ?? 0n, { by: 'carol', reason: 'test' });
  await expectChange();
  await world.groups.seek(group, 'now', { by: 'carol', reason: 'test' });
  await expectChange();
  await world.groups.leave([other], []);
  await expectChange();
  await world.groups.delete(group, { by: 'carol', reason: 'test' });
  expect(await version()).toBeUndefined();
});
