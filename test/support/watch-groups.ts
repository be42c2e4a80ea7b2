/** Watch groups as tests drive them, without the streams that members would read. */

import { afterAll, beforeAll } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import type { WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import type { AssignedLane, JoinRequest, Membership, WatchGroups } from '#core/ports/watch-groups.ts';
import { prepareDatabase, type PreparedDatabase } from '#test/support/prepared-database.ts';

export const LONG_LEASE_MS = 600_000;

const OWNER = { audience: 'public', owner: 'billing' } as const;

/** Of a group that no other test has. */
export function newGroup(tenants: JoinRequest['tenants'], changes: Partial<JoinRequest> = {}): JoinRequest {
  return {
    ...OWNER,
    tenants,
    name: `group-${crypto.randomUUID()}`,
    selection: '{}',
    start: 'earliest',
    leaseMs: LONG_LEASE_MS,
    ...changes,
  };
}

/** What the superuser does to groups behind their back, and what it sees. */
export interface GroupWorld {
  readonly groups: WatchGroups & WatchGroupAdmin;
  join(request: JoinRequest): Promise<Membership>;
  /** The member's lease has run out; nobody has noticed yet. */
  expire(...members: readonly bigint[]): Promise<void>;
  /** The members are renewed, and what there is to settle in their groups is settled: what a process does every two seconds. */
  renew(...members: readonly bigint[]): Promise<readonly bigint[]>;
  /** The time for handing over has passed. */
  endPatience(group: bigint): Promise<void>;
  /** Holders give up all that others wait for, until nobody waits. */
  handOver(group: bigint): Promise<void>;
  /** All lanes, whoever holds them. */
  rows(group: bigint): Promise<readonly LaneRow[]>;
  /** The lane of a member that is first in the order of streams and lanes. */
  firstLane(member: bigint): Promise<AssignedLane>;
  streamOf(tenant: string): Promise<bigint>;
  /** As if so many events had been published in it, at these positions. */
  setHead(
    stream: bigint,
    head: { readonly seq: number; readonly position: number; readonly first?: number },
  ): Promise<void>;
}

/** A world in a database of the test file's own. */
export interface OwnGroupWorld extends GroupWorld, Pick<PreparedDatabase, 'sql' | 'url'> {}

/** @param tenants that there are. What it gives is there for the tests and their hooks. */
export function useGroupWorld(tenants: readonly string[]): OwnGroupWorld {
  const world = {} as OwnGroupWorld;
  let database: PreparedDatabase;
  beforeAll(async () => {
    database = await prepareDatabase(tenants);
    Object.assign(world, groupWorld(database.sql), { sql: database.sql, url: database.url });
  });
  afterAll(() => database.close());
  return world;
}

export interface LaneRow {
  readonly stream: bigint;
  readonly lane: number;
  readonly member: bigint | null;
  readonly nextMember: bigint | null;
  readonly fence: bigint;
  readonly confirmedSeq: bigint | null;
  readonly confirmedPosition: bigint | null;
  readonly deliveredSeq: bigint | null;
  readonly deliveredBefore: readonly bigint[];
  readonly isUnacked: boolean;
}

function groupWorld(sql: Sql): GroupWorld {
  const groups = postgresWatchGroups(sql);
  return {
    groups,
    join: (request) => groups.join(request),

    async expire(...members) {
      await sql`update plumbline.group_member set expires_at = clock_timestamp() - interval '1 second'
        where id = any (${members.map(String)}::bigint[])`;
    },

    async renew(...members) {
      const renewed = await groups.renew(members, LONG_LEASE_MS);
      const joined = await sql<{ group: bigint }[]>`select distinct watch_group as "group" from plumbline.group_member
        where id = any (${members.map(String)}::bigint[])`;
      for (const group of await groups.unsettled(joined.map((row) => row.group))) await groups.settle(group);
      return renewed;
    },

    async endPatience(group) {
      // Locks in the order of all others.
      await sql`update plumbline.group_lane l set hand_over_by = clock_timestamp() - interval '1 second'
        from (select stream, lane from plumbline.group_lane
          where watch_group = ${String(group)}::bigint and next_member is not null order by stream, lane for update) w
        where l.watch_group = ${String(group)}::bigint and l.stream = w.stream and l.lane = w.lane
          and l.next_member is not null`;
    },

    async handOver(group) {
      for (;;) {
        const state = await sql<{ id: bigint }[]>`
          select id from plumbline.group_member where watch_group = ${String(group)}::bigint`;
        const lanes = await groups.lanes(state.map(({ id }) => id));
        const wanted = lanes.filter(({ isWanted }) => isWanted);
        if (wanted.length === 0) return;
        await groups.release(wanted);
      }
    },

    async rows(group) {
      return sql<LaneRow[]>`
        select stream, lane, member, next_member as "nextMember", fence, confirmed_seq as "confirmedSeq",
          confirmed_position as "confirmedPosition", delivered_seq as "deliveredSeq",
          delivered_before as "deliveredBefore", unacked_since is not null as "isUnacked"
        from plumbline.group_lane where watch_group = ${String(group)}::bigint order by stream, lane`;
    },

    async firstLane(member) {
      const [lane] = await groups.lanes([member]);
      if (!lane) throw new Error(`member ${member} holds no lane`);
      return lane;
    },

    async streamOf(tenant) {
      const [row] = await sql<{ id: bigint }[]>`
        select id from plumbline.stream where tenant = ${tenant} order by id desc limit 1`;
      if (!row) throw new Error(`tenant ${tenant} has no stream`);
      return row.id;
    },

    async setHead(stream, { seq, position, first = 1 }) {
      await sql`update plumbline.frontier set first_seq = ${first}, last_seq = ${seq}, last_position = ${position}
        where stream = ${String(stream)}::bigint`;
    },
  };
}
