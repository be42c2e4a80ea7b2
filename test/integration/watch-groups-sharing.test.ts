import { describe, expect, test } from 'vitest';
import { createTenants } from '#test/support/prepared-database.ts';
import { type Random, seededRandom, testSeed } from '#test/support/random.ts';
import { useGroupWorld, type LaneRow, newGroup } from '#test/support/watch-groups.ts';

const TENANTS = ['acme', 'globex', 'initech', 'umbrella', 'hooli'];
const LANES = 16;
const WAYS_OUT = ['leave', 'expire'] as const;

const world = useGroupWorld(TENANTS);

/** How many of these rows each member has. */
function shares(rows: readonly LaneRow[], members: Iterable<bigint>): Map<bigint, number> {
  const counts = new Map([...members].map((member) => [member, 0]));
  for (const { member } of rows) {
    if (member !== null && counts.has(member)) counts.set(member, (counts.get(member) ?? 0) + 1);
  }
  return counts;
}

function spread(counts: Map<bigint, number>): number {
  return Math.max(...counts.values()) - Math.min(...counts.values());
}

/** How many lanes have to move at the least from members that live, so that all have the same number, or one apart. */
function leastMoves(before: readonly LaneRow[], members: Iterable<bigint>): number {
  const ids = [...members];
  const need = (rows: readonly LaneRow[]): number => {
    const counts = [...shares(rows, ids).values()];
    const free = rows.length - counts.reduce((sum, count) => sum + count, 0);
    const missing = counts.reduce((sum, count) => sum + Math.max(0, Math.floor(rows.length / ids.length) - count), 0);
    const surplus = counts.reduce((sum, count) => sum + Math.max(0, count - Math.ceil(rows.length / ids.length)), 0);
    return Math.max(surplus, missing - free);
  };
  const streams = [...Map.groupBy(before, ({ stream }) => stream).values()];
  return Math.max(
    need(before),
    streams.map(need).reduce((sum, moves) => sum + moves, 0),
  );
}

describe('lanes', () => {
  test('all go to the only member at once', async () => {
    const { group, member, isNew } = await world.join(newGroup(TENANTS));
    expect(isNew).toBe(true);
    const rows = await world.rows(group);
    expect(rows.length).toBe(TENANTS.length * LANES);
    expect(new Set(rows.map((row) => row.member))).toEqual(new Set([member]));
  });

  // Of one stream nothing moves in vain. Over several, one lane of each may move so that all that members have is even.
  test.each([
    { tenants: TENANTS.slice(0, 1), slack: 0 },
    { tenants: TENANTS, slack: TENANTS.length },
  ])(
    'of $tenants.length tenants are shared evenly and with the least moves, whoever comes, leaves or dies',
    async ({ tenants, slack }) => {
      const random = seededRandom(testSeed());
      const request = newGroup(tenants);
      const first = await world.join(request);
      const members = new Set([first.member]);
      for (let step = 0; step < 150; step += 1) {
        const before = await world.rows(first.group);
        const deed = members.size === 1 || (members.size < 40 && random.chance(0.55)) ? 'join' : random.pick(WAYS_OUT);
        if (deed === 'join') members.add((await world.join(request)).member);
        else await remove(random.pick([...members]), deed, members, random);
        await world.handOver(first.group);
        const rows = await world.rows(first.group);
        const told = `seed ${random.seed}, step ${step}: ${deed}, ${members.size} members`;
        expect(new Set(rows.map(({ member }) => member)).difference(members), told).toEqual(new Set());
        expect(spread(shares(rows, members)), told).toBeLessThanOrEqual(1);
        for (const stream of Map.groupBy(rows, (row) => row.stream).values()) {
          expect(spread(shares(stream, members)), told).toBeLessThanOrEqual(1);
        }
        expect(movesBetween(before, rows, members), told).toBeLessThanOrEqual(leastMoves(before, members) + slack);
      }
    },
  );

  test('of tenants that come one by one are even, by tenant and in all, and no other lane moves', async () => {
    const request = newGroup('*');
    const { group, member } = await world.join(request);
    const members = [member, (await world.join(request)).member, (await world.join(request)).member];
    await world.handOver(group);
    for (let count = 0; count < 12; count += 1) {
      const before = await world.rows(group);
      await createTenants(world.sql, [`one-${count}`]);
      await world.renew(...members);
      const rows = await world.rows(group);
      const stream = await world.streamOf(`one-${count}`);
      expect(rows.filter((row) => row.stream !== stream)).toEqual(before);
      expect(spread(shares(rows.slice(before.length), members))).toBe(1);
      expect(spread(shares(rows, members))).toBeLessThanOrEqual(1);
    }
  });

  test('of a tenant that is blocked for a member go to those that see it, evenly, and to nobody while none does', async () => {
    const { group, member } = await world.join(newGroup('*'));
    const request = newGroup('*');
    const blind = { ...request, blockedTenants: ['acme', 'globex'] };
    const blinded = [(await world.join(blind)).member, (await world.join(blind)).member];
    const streams = await Promise.all(['acme', 'globex'].map((tenant) => world.streamOf(tenant)));
    const isBlocked = ({ stream }: LaneRow): boolean => streams.includes(stream);
    const joined = await world.join(request);
    await world.handOver(joined.group);
    const rows = await world.rows(joined.group);
    expect(new Set(rows.filter(isBlocked).map((row) => row.member))).toEqual(new Set([joined.member]));
    for (const stream of Map.groupBy(
      rows.filter((row) => !isBlocked(row)),
      (row) => row.stream,
    ).values()) {
      expect(spread(shares(stream, [...blinded, joined.member]))).toBe(1);
    }
    await world.groups.leave([joined.member], []);
    const left = await world.rows(joined.group);
    expect(left.filter(isBlocked).map((row) => row.member)).toEqual(left.filter(isBlocked).map(() => joined.member));
    expect(shares(left.filter(isBlocked), blinded)).toEqual(new Map(blinded.map((one) => [one, 0])));
    const again = await world.join({ ...request, blockedTenants: ['globex'] });
    const now = await world.rows(joined.group);
    expect(now.filter(({ stream }) => stream === streams[0]).every((row) => row.member === again.member)).toBe(true);
    expect(now.filter(({ stream }) => stream === streams[1]).some((row) => row.member === again.member)).toBe(false);
    // Members that see all are shared out to as ever.
    expect(new Set((await world.rows(group)).map((row) => row.member))).toEqual(new Set([member]));
  });

  test('are shared evenly by those that see their tenant, whoever comes and goes, and whatever is blocked for whom', async () => {
    const random = seededRandom(testSeed());
    const request = newGroup(TENANTS);
    const streams = await Promise.all(TENANTS.map((tenant) => world.streamOf(tenant)));
    const { group, member } = await world.join(request);
    const members = new Map([[member, new Set<bigint>()]]);
    for (let step = 0; step < 40; step += 1) {
      const one = random.pick([...members.keys()]);
      if (one !== member && random.chance(0.4)) {
        members.delete(one);
        await world.groups.leave([one], []);
      } else {
        const blocked = TENANTS.filter(() => random.chance(0.5));
        const joined = await world.join({ ...request, blockedTenants: blocked });
        members.set(joined.member, new Set(blocked.map((tenant) => streams[TENANTS.indexOf(tenant)] ?? 0n)));
      }
      await world.handOver(group);
      const rows = await world.rows(group);
      for (const stream of streams) {
        const viewers = [...members].filter(([, blocked]) => !blocked.has(stream)).map(([id]) => id);
        const counts = shares(
          rows.filter((row) => row.stream === stream),
          viewers,
        );
        const told = `seed ${random.seed}, step ${step}: ${viewers.length} of ${members.size} see ${stream}`;
        expect(
          [...counts.values()].reduce((sum, count) => sum + count, 0),
          told,
        ).toBe(LANES);
        expect(spread(counts), told).toBeLessThanOrEqual(1);
      }
    }
  });

  test('of a tenant that comes later and is blocked for a member go to the others', async () => {
    const request = newGroup('*');
    const { group, member } = await world.join(request);
    const blind = await world.join({ ...request, blockedTenants: ['hidden'] });
    await world.handOver(group);
    await createTenants(world.sql, ['hidden']);
    const stream = await world.streamOf('hidden');
    await world.renew(member, blind.member);
    const rows = (await world.rows(group)).filter((row) => row.stream === stream);
    expect(shares(rows, [member, blind.member])).toEqual(
      new Map([
        [member, LANES],
        [blind.member, 0],
      ]),
    );
  });

  test('of a thousand tenants are even for three members, by tenant and in all', { timeout: 60_000 }, async () => {
    const tenants = Array.from({ length: 1_000 }, (_, index) => `many-${index}`);
    await createTenants(world.sql, tenants);
    const request = newGroup(tenants);
    const { group, member } = await world.join(request);
    const members = [member, (await world.join(request)).member, (await world.join(request)).member];
    await world.handOver(group);
    const rows = await world.rows(group);
    expect(rows.length).toBe(1_000 * LANES);
    const byStream = [...Map.groupBy(rows, ({ stream }) => stream).values()];
    expect(Math.max(...byStream.map((stream) => spread(shares(stream, members))))).toBe(1);
    expect(spread(shares(rows, members))).toBeLessThanOrEqual(1);
  });

  test('of a tenant that comes later go to the members with the next renewal, from its beginning', async () => {
    const request = newGroup('*', { start: 'now' });
    const { group, member } = await world.join(request);
    const other = await world.join(request);
    await world.handOver(group);
    await createTenants(world.sql, ['late']);
    const stream = await world.streamOf('late');
    await world.setHead(stream, { seq: 7, position: 70 });
    await world.renew(member);
    const rows = (await world.rows(group)).filter((row) => row.stream === stream);
    expect(rows.length).toBe(LANES);
    expect(shares(rows, [member, other.member])).toEqual(
      new Map([
        [member, 8],
        [other.member, 8],
      ]),
    );
    expect(new Set(rows.map(({ confirmedSeq }) => confirmedSeq))).toEqual(new Set([0n]));
  });
});

async function remove(
  one: bigint,
  how: (typeof WAYS_OUT)[number],
  members: Set<bigint>,
  random: Random,
): Promise<void> {
  members.delete(one);
  if (how === 'leave') return world.groups.leave([one], []);
  await world.expire(one);
  await world.renew(random.pick([...members]));
}

/** How many lanes went from one member that lives to another. */
function movesBetween(before: readonly LaneRow[], after: readonly LaneRow[], members: ReadonlySet<bigint>): number {
  const lives = (member: bigint | null | undefined): boolean => typeof member === 'bigint' && members.has(member);
  return after.filter(({ member }, at) => member !== before[at]?.member && lives(before[at]?.member)).length;
}
