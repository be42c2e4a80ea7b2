import { beforeEach, describe, expect, test } from 'vitest';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import { ORIGIN } from '#core/ports/event-log.ts';
import type { JoinRequest } from '#core/ports/watch-groups.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { useGroupWorld, newGroup } from '#test/support/watch-groups.ts';

const ACT = { by: 'carol', reason: 'test' };
const DAY_MS = 86_400_000;

const world = useGroupWorld(['acme', 'globex']);
let request: JoinRequest;

beforeEach(() => {
  request = newGroup(['acme', 'globex']);
});

describe('a group', () => {
  test('is one for all that name its tenants in whatever order, and another for anybody else', async () => {
    const { group } = await world.join(request);
    expect(await world.join({ ...request, tenants: ['globex', 'acme', 'acme'] })).toMatchObject({
      group,
      isNew: false,
    });
    for (const change of [{ owner: 'other' }, { audience: 'private' as const }, { tenants: ['acme'] }]) {
      expect(await world.join({ ...request, ...change })).toMatchObject({ isNew: true });
    }
  });

  test('of many that come at once for the first time is made once', async () => {
    const joined = await Promise.all(Array.from({ length: 12 }, () => world.join(request)));
    expect(new Set(joined.map(({ group }) => group)).size).toBe(1);
    expect(joined.filter(({ isNew }) => isNew).length).toBe(1);
  });

  test('begins at the oldest event, or at the head when it is asked to', async () => {
    const stream = await world.streamOf('acme');
    await world.setHead(stream, { seq: 12, position: 120, first: 4 });
    const earliest = await world.join(request);
    const now = await world.join(newGroup(['acme'], { start: 'now' }));
    expect((await world.firstLane(earliest.member)).confirmed).toEqual({ seq: 3n, position: 3n });
    expect((await world.firstLane(now.member)).confirmed).toEqual({ seq: 12n, position: 120n });
    expect((await world.groups.get(request))?.streamLag).toBe(9n);
    await world.setHead(stream, { seq: 0, position: 0 });
  });

  test('begins at the oldest event that the index knows when the events lie in Kafka, or behind all that are gone', async () => {
    await createTenants(world.sql, ['elsewhere']);
    const stream = await world.streamOf('elsewhere');
    await world.sql`insert into plumbline.topic (name, stream, first_seq) values ('elsewhere', ${String(stream)}::bigint, 1)`;
    await world.sql`update plumbline.frontier set topic = 'elsewhere', start_position = 40 where stream = ${String(stream)}::bigint`;
    await world.setHead(stream, { seq: 12, position: 120, first: 4 });
    const { group, member } = await world.join(newGroup(['elsewhere']));
    expect((await world.firstLane(member)).confirmed).toEqual({ seq: 3n, position: 40n });
    await world.groups.seek(group, 'now', ACT);
    await world.groups.seek(group, 'earliest', ACT);
    expect((await world.firstLane(member)).confirmed).toEqual({ seq: 3n, position: 40n });
    await world.setHead(stream, { seq: 12, position: 120, first: 13 });
    await world.groups.seek(group, 'earliest', ACT);
    expect((await world.firstLane(member)).confirmed).toEqual({ seq: 12n, position: 120n });
  });

  test('is known by all that it is, from its first member until it is deleted', async () => {
    expect(await world.groups.exists(request)).toBe(false);
    const { group } = await world.join(request);
    const others = [
      { ...request, audience: 'private' as const },
      { ...request, owner: 'another' },
      { ...request, tenants: '*' as const },
    ];
    expect(await Promise.all([request, ...others].map((each) => world.groups.exists(each)))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    await world.groups.delete(group, ACT);
    expect(await world.groups.exists(request)).toBe(false);
  });

  test('refuses members that select something else while it has some, and takes them when it has none', async () => {
    const { member } = await world.join(request);
    const other = { ...request, selection: '{"kinds":["Widget"]}' };
    await expect(world.join(other)).rejects.toMatchObject({
      reason: 'Conflict',
      message: expect.stringContaining('its members select {}'),
    });
    await world.expire(member);
    expect(await world.join(other)).toMatchObject({ isNew: false });
    await expect(world.join(request)).rejects.toMatchObject({ reason: 'Conflict' });
  });

  test('is refused when its owner has a hundred; one that exists is not', async () => {
    const owner = `owner-${crypto.randomUUID()}`;
    const groups = Array.from({ length: 100 }, () => newGroup(['acme'], { owner }));
    for (const each of groups) await world.join(each);
    await expect(world.join(newGroup(['acme'], { owner }))).rejects.toMatchObject({
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 60 },
    });
    const [first] = groups;
    if (!first) throw new Error('no groups');
    const { group } = await world.join(first);
    await world.groups.delete(group, ACT);
    expect(await world.join(newGroup(['acme'], { owner }))).toMatchObject({ isNew: true });
  });

  test('that nobody was a member of for long is dropped, and its next member is told', async () => {
    const { group, member } = await world.join(request);
    const lane = await world.firstLane(member);
    await world.groups.ack(request, [{ ...lane, point: { seq: 5n, position: 50n } }]);
    await world.expire(member);
    expect(await world.groups.dropIdle(DAY_MS)).toBe(0);
    await world.sql`update plumbline.watch_group set idle_since = clock_timestamp() - interval '25 hours'
      where id = ${String(group)}::bigint and idle_since is not null`;
    expect(await world.groups.dropIdle(DAY_MS)).toBe(1);
    expect(await world.groups.get(request)).toBeUndefined();
    const again = await world.join(request);
    expect(again).toMatchObject({ isNew: true, droppedAt: expect.any(Date) });
    expect((await world.firstLane(again.member)).confirmed).toEqual(ORIGIN);
    expect((await world.join(request)).droppedAt).toEqual(again.droppedAt);
  });

  test('that ended is forgotten with what was done to it once that is long ago; deeds of those that live are too', async () => {
    const { group } = await world.join(request);
    await world.groups.delete(group, ACT);
    const living = await world.join(request);
    await world.groups.seek(living.group, 'earliest', ACT);
    const groups = [group, living.group].map(String);
    const left = async (): Promise<unknown> => {
      const [row] = await world.sql`select
        array(select id from plumbline.watch_group where id = any (${groups}::bigint[]) order by id) as groups,
        array(select watch_group from plumbline.group_action where watch_group = any (${groups}::bigint[]) order by id)
          as deeds`;
      return row;
    };
    await world.groups.forgetEnded(DAY_MS);
    expect(await left()).toEqual({ groups: [group, living.group], deeds: [group, living.group] });
    await world.sql`update plumbline.watch_group set ended_at = ended_at - interval '25 hours'
      where id = ${String(group)}::bigint`;
    await world.groups.forgetEnded(DAY_MS);
    expect(await left()).toEqual({ groups: [living.group], deeds: [living.group] });
    await world.sql`update plumbline.group_action set at = at - interval '25 hours'
      where watch_group = ${String(living.group)}::bigint`;
    expect(await world.groups.forgetEnded(DAY_MS)).toBe(1);
    expect(await left()).toEqual({ groups: [living.group], deeds: [] });
    expect(await world.renew(living.member)).toEqual([living.member]);
  });

  test('with a member is never dropped', async () => {
    const { member } = await world.join(request);
    expect(await world.groups.dropIdle(0)).toBe(0);
    expect(await world.renew(member)).toEqual([member]);
  });

  test('is not alone in being dropped: of many, each transaction ends a hundred, until none is left', async () => {
    const owner = `owner-${crypto.randomUUID()}`;
    await world.sql`insert into plumbline.watch_group (audience, tenants, owner, name, selection)
      select 'public', 'acme', ${owner}, 'group-' || n, '' from generate_series(1, 250) n`;
    const [round] = await world.sql`select plumbline.settle_abandoned_groups() as settled,
      plumbline.drop_idle_groups(interval '1 day') as dropped`;
    expect(round).toEqual({ settled: 100, dropped: 0 });
    expect(await world.groups.dropIdle(DAY_MS)).toBe(0);
    const aged = await world.sql`update plumbline.watch_group set idle_since = idle_since - interval '25 hours'
      where owner = ${owner} and idle_since is not null`;
    expect(aged.count).toBe(250);
    const [first] = await world.sql`select plumbline.drop_idle_groups(interval '1 day') as dropped`;
    expect(first).toEqual({ dropped: 100 });
    expect(await world.groups.dropIdle(DAY_MS)).toBe(150);
  });

  test('that was deleted ends its members; its successor begins anew and is told of no loss', async () => {
    const { group, member } = await world.join(request);
    expect(await world.groups.delete(group, ACT)).toBe(true);
    expect(await world.groups.delete(group, ACT)).toBe(false);
    expect(await world.renew(member)).toEqual([]);
    expect(await world.groups.lanes([member])).toEqual([]);
    await expect(world.groups.seek(group, 'now', ACT)).rejects.toMatchObject({ reason: 'NotFound' });
    expect(await world.join(request)).toMatchObject({ isNew: true, droppedAt: undefined });
  });

  test('is listed for who may see all of its tenants', async () => {
    const owner = `owner-${crypto.randomUUID()}`;
    await world.join({ ...request, owner });
    await world.join(newGroup('*', { owner }));
    const tenantsSeen = async (tenants: JoinRequest['tenants']): Promise<unknown> =>
      (await world.groups.list({ audience: 'public', tenants, owner }, 0n, 10)).map((group) => group.tenants);
    expect(await tenantsSeen('*')).toHaveLength(2);
    expect(await tenantsSeen(['acme', 'globex', 'other'])).toEqual([['acme', 'globex']]);
    expect(await tenantsSeen(['acme'])).toEqual([]);
    expect(await world.groups.list({ audience: 'private', tenants: '*', owner }, 0n, 10)).toEqual([]);
  });
});

describe('seek', () => {
  test.each([
    { to: 'earliest' as const, confirmed: { seq: 3n, position: 3n } },
    { to: 'now' as const, confirmed: { seq: 12n, position: 120n } },
  ])('to $to begins all lanes anew and counts attempts anew', async ({ to, confirmed }) => {
    await createTenants(world.sql, [`seek-${to}`]);
    request = newGroup([`seek-${to}`]);
    const { group, member } = await world.join(request);
    const before = await world.firstLane(member);
    await world.groups.nack(request, [{ ...before, point: { seq: 3n, position: 30n }, delayMs: 60_000 }]);
    await world.setHead(before.stream, { seq: 12, position: 120, first: 4 });
    await world.groups.seek(group, to, ACT);
    const lanes = await world.groups.lanes([member]);
    expect(lanes.length).toBe(16);
    for (const lane of lanes)
      expect(lane).toMatchObject({ confirmed, deliveredBefore: [], pauseMs: 0, fence: expect.any(BigInt) });
    expect(lanes[0]?.fence).toBe(before.fence + 2n);
    expect(await world.groups.ack(request, [{ ...before, point: { seq: 13n, position: 130n } }])).toEqual(['Fenced']);
  });

  test('to points begins behind them, and at the beginning of streams without one', async () => {
    const { group, member } = await world.join(request);
    const acme = await world.streamOf('acme');
    await world.groups.seek(group, new Map([[acme, { seq: 4n, position: 44n }]]), ACT);
    for (const lane of await world.groups.lanes([member])) {
      expect(lane.confirmed).toEqual(lane.stream === acme ? { seq: 4n, position: 44n } : { seq: 0n, position: 0n });
    }
  });
});

test('a reset makes a group as if it were new, with its members', async () => {
  const { group, member } = await world.join(request);
  const lane = await world.firstLane(member);
  const letter = { tenant: lane.tenant, event: '{}', type: 'ADDED', attempts: 16, reason: 'test' };
  await world.groups.park(lane, { ...letter, point: { seq: 2n, position: 2n } });
  await world.groups.reset(group, ACT);
  expect(await world.groups.deadLetters(group, 0n, 10)).toEqual({ letters: [], more: false });
  expect(await world.firstLane(member)).toMatchObject({ confirmed: ORIGIN, fence: lane.fence + 1n });
  await world.groups.delete(group, ACT);
  await expect(world.groups.reset(group, ACT)).rejects.toMatchObject({ reason: 'NotFound' });
});

describe('a tenant that goes', () => {
  /** Offboards it; so many events of it are in the log. */
  async function close(tenant: string, events: number): Promise<bigint> {
    const stream = await world.streamOf(tenant);
    await world.setHead(stream, { seq: events, position: events });
    await world.sql`delete from plumbline.outbox where stream = ${String(stream)}::bigint`;
    await world.sql`update plumbline.stream set closing_at = clock_timestamp(), closed_at = clock_timestamp()
      where id = ${String(stream)}::bigint`;
    return stream;
  }

  test('keeps its lanes until all of it is confirmed in each of them', async () => {
    await createTenants(world.sql, ['leaving']);
    request = newGroup(['leaving']);
    const { group, member } = await world.join(request);
    await close('leaving', 5);
    const lanes = await world.groups.lanes([member]);
    const end = { seq: 5n, position: 5n };
    await world.groups.ack(
      request,
      lanes.slice(1).map((lane) => ({ ...lane, point: end })),
    );
    await world.renew(member);
    expect((await world.rows(group)).length).toBe(16);
    await world.groups.mark(lanes.slice(0, 1).map((lane) => ({ ...lane, confirmed: end })));
    await world.renew(member);
    expect(await world.rows(group)).toEqual([]);
    expect(
      await world.groups.ack(
        request,
        lanes.map((lane) => ({ ...lane, point: end })),
      ),
    ).toEqual(lanes.map(() => 'Unknown'));
  });

  test('takes its lanes and dead letters with it when it is removed from the log', async () => {
    await createTenants(world.sql, ['removed']);
    request = newGroup(['removed', 'acme']);
    const { group, member } = await world.join(request);
    const stream = await close('removed', 5);
    const lane = (await world.groups.lanes([member])).find((each) => each.stream === stream);
    if (!lane) throw new Error('no lane');
    const letter = { tenant: 'removed', event: '{}', type: 'ADDED', attempts: 16, reason: 'test' };
    await world.groups.park(lane, { ...letter, point: { seq: 2n, position: 2n } });
    const streams = postgresTenantStreams(world.sql, undefined);
    await streams.drain(stream, false);
    await streams.markRemoved(stream);
    const rows = await world.rows(group);
    expect(rows.length).toBe(16);
    expect(rows.some((row) => row.stream === stream)).toBe(false);
    expect(await world.groups.deadLetters(group, 0n, 10)).toEqual({ letters: [], more: false });
    await world.renew(member);
    expect((await world.rows(group)).length).toBe(16);
  });

  test('and comes again by its name has new lanes, from its beginning', async () => {
    await createTenants(world.sql, ['again']);
    request = newGroup(['again'], { start: 'now' });
    const { group, member } = await world.join(request);
    const old = await close('again', 0);
    await world.sql`delete from plumbline.resource where tenant = 'system' and kind = 'Tenant' and name = 'again'`;
    await createTenants(world.sql, ['again']);
    await world.renew(member);
    const rows = await world.rows(group);
    const fresh = await world.streamOf('again');
    expect(fresh).not.toBe(old);
    expect(rows.length).toBe(16);
    expect(rows.every((row) => row.stream === fresh && row.confirmedSeq === 0n && row.member === member)).toBe(true);
  });
});
