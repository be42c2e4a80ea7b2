import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import type { AssignedLane, WatchGroups } from '#core/ports/watch-groups.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { type Random, seededRandom, testSeed } from '#test/support/random.ts';
import { useGroupWorld, LONG_LEASE_MS, newGroup } from '#test/support/watch-groups.ts';

const TENANTS = ['acme', 'globex', 'initech'];
const ACTORS = 8;
const STEPS = 80;

const world = useGroupWorld(TENANTS);
const pools: Sql[] = [];

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
});

describe('thousands of lanes, while statistics are of another time,', () => {
  const tenants = Array.from({ length: 300 }, (_, index) => `moving-${index}`);
  const request = newGroup(tenants);
  let member: bigint;

  beforeAll(async () => {
    // There are few streams then, and nobody waits for a lane.
    await world.sql`analyze plumbline.stream`;
    await createTenants(world.sql, tenants);
    ({ member } = await world.join(request));
    await world.sql`analyze plumbline.group_lane`;
  });

  test('are asked for without a look at streams that they are not of', async () => {
    const read = `select seq_tup_read::int4 as read from pg_stat_xact_user_tables where relname = 'stream'`;
    const [, before, held, after] = await world.sql.unsafe(
      `begin; ${read}; select count(*)::int4 as held from plumbline.lanes_of('{${member}}'); ${read}; commit`,
    );
    expect([held, after]).toEqual([[{ held: 4_800 }], before]);
  });

  test('are handed over with one look at each', async () => {
    await world.join(request);
    const wanted = (await world.groups.lanes([member])).filter(({ isWanted }) => isWanted);
    expect(wanted).toHaveLength(2_400);
    const column = (of: (lane: AssignedLane) => bigint | number): string => `'{${wanted.map(of).join()}}'::bigint[]`;
    const [row] = await world.sql.unsafe(`explain (analyze, buffers, format json) select plumbline.release_lanes(
      ${column(({ group }) => group)}, ${column(({ stream }) => stream)}, ${column(({ lane }) => lane)},
      ${column(({ fence }) => fence)})`);
    expect(row?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] / wanted.length).toBeLessThan(30);
    expect(await world.groups.lanes([member])).toHaveLength(2_400);
  });
});

test('a renewal of a member of a thousand tenants writes its own row and nothing else', async () => {
  const tenants = Array.from({ length: 1_000 }, (_, index) => `idle-${index}`);
  await createTenants(world.sql, tenants);
  const { group, member } = await world.join(newGroup(tenants));
  const versions = async (): Promise<readonly { what: string }[]> => {
    const id = String(group);
    return world.sql<{ what: string }[]>`
      select 'lane' as what, stream || '.' || lane as id, xmin::text from plumbline.group_lane
        where watch_group = ${id}::bigint
      union all select 'group', id::text, xmin::text from plumbline.watch_group where id = ${id}::bigint
      union all select 'stream', id::text, xmin::text from plumbline.stream
      union all select 'other member', id::text, xmin::text from plumbline.group_member where id <> ${String(member)}::bigint
      order by 1, 2`;
  };
  const before = await versions();
  expect(before.filter(({ what }) => what === 'lane')).toHaveLength(16_000);
  for (let renewal = 0; renewal < 10; renewal += 1) {
    expect(await world.renew(member)).toEqual([member]);
  }
  expect(await versions()).toEqual(before);
});

test('a process asks for what has changed in the group of a thousand tenants without a look at its lanes', async () => {
  const tenants = Array.from({ length: 1_000 }, (_, index) => `still-${index}`);
  await createTenants(world.sql, tenants);
  const { group } = await world.join(newGroup(tenants));
  const [size] = await world.sql<{ pages: number }[]>`
    select (pg_relation_size('plumbline.group_lane') / 8192)::int4 as pages`;
  expect(size?.pages).toBeGreaterThan(200);
  expect(await world.groups.unsettled([group])).toEqual([]);
  const ids = `'{${group}}'::bigint[]`;
  for (const question of [
    `select plumbline.unsettled_groups(${ids})`,
    `select version from plumbline.watch_group where id = any (${ids})`,
  ]) {
    const [row] = await world.sql.unsafe(`explain (analyze, buffers, format json) ${question}`);
    expect(row?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'], question).toBeLessThan(100);
  }
});

test(
  'whatever members do at once, a lane has one holder at a time, and nobody waits for nobody',
  { timeout: 60_000 },
  async () => {
    const request = newGroup(TENANTS, { start: 'now' });
    const { group } = await world.join(request);
    const seed = testSeed();
    const holders = new Holders();
    await Promise.all(Array.from({ length: ACTORS }, (_, index) => act(index)));
    for (const member of (await world.groups.get(request))?.members ?? [])
      await world.groups.leave([member.member], []);
    const last = await world.join(request);
    const rows = await world.rows(group);
    expect(rows.length).toBe(TENANTS.length * 16);
    expect(rows.every(({ member, nextMember }) => member === last.member && nextMember === null)).toBe(true);
    expect(holders.violations, `seed ${seed}`).toEqual([]);
    expect(holders.acked).toBeGreaterThan(100);
    expect(holders.fences).toBeGreaterThan(200);

    /** One process: comes, goes, dies, hands over, acks. A deadlock is an error of the statement. */
    async function act(index: number): Promise<void> {
      const random = seededRandom((seed + index) >>> 0);
      const pool = connect(world.url, { applicationName: `actor-${index}`, maxConnections: 2 });
      pools.push(pool);
      const groups = postgresWatchGroups(pool);
      let member: bigint | undefined;
      for (let step = 0; step < STEPS; step += 1) {
        const chance = random.next();
        if (member === undefined) {
          ({ member } = await groups.join(request));
        } else if (chance < 0.1) {
          await groups.leave([member], []);
          member = undefined;
        } else if (chance < 0.2) {
          await world.expire(member);
          member = undefined;
        } else {
          const renewed = await groups.renew([member], LONG_LEASE_MS);
          for (const unsettled of await groups.unsettled([group])) await groups.settle(unsettled);
          if (random.chance(0.2)) await world.endPatience(group);
          const lanes = await groups.lanes(renewed);
          holders.see(lanes);
          await work(groups, lanes, random);
        }
      }
    }

    async function work(groups: WatchGroups, lanes: readonly AssignedLane[], random: Random): Promise<void> {
      await groups.mark(lanes.map((lane) => ({ ...lane, delivered: (lane.confirmed?.seq ?? 0n) + 3n })));
      const some = lanes.filter(() => random.chance(0.5));
      const acks = some.map((lane) => {
        const seq = (lane.confirmed?.seq ?? 0n) + BigInt(random.int(1, 3));
        return { ...lane, point: { seq, position: seq } };
      });
      holders.confirm(some, await groups.ack(request, acks));
      if (random.chance(0.3))
        await groups.nack(
          request,
          acks.slice(0, 2).map((ack) => ({ ...ack, delayMs: 0 })),
        );
      await groups.release(lanes.filter(({ isWanted }) => isWanted));
    }
  },
);

/** Who was seen to hold what: a fence of a lane belongs to one member for ever. */
class Holders {
  readonly violations: string[] = [];
  acked = 0;
  readonly #holders = new Map<string, bigint>();

  get fences(): number {
    return this.#holders.size;
  }

  see(lanes: readonly AssignedLane[]): void {
    for (const { stream, lane, fence, member } of lanes) {
      const key = `${stream}.${lane} fence ${fence}`;
      const known = this.#holders.get(key) ?? member;
      if (known !== member) this.violations.push(`${key} is held by ${known} and by ${member}`);
      this.#holders.set(key, known);
    }
  }

  confirm(lanes: readonly AssignedLane[], results: readonly string[]): void {
    this.acked += results.filter((result) => result === 'Acked').length;
    if (results.length !== lanes.length || results.includes('Unknown'))
      this.violations.push(`acks gave ${results.join()}`);
  }
}
