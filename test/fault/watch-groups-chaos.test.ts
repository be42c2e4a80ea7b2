import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { LANES_PER_STREAM, laneOf } from '#core/lane.ts';
import { makeChanges } from '#test/fault/groups/changes.ts';
import { type Members, startMembers } from '#test/fault/groups/members.ts';
import { judge, type LoggedEvent } from '#test/fault/groups/oracle.ts';
import { type Delivered, readRecords, type RecordLine, type Sent } from '#test/fault/groups/records.ts';
import { type Servers, startServers } from '#test/fault/groups/servers.ts';
import { isPoison, MAX_ATTEMPTS } from '#test/fault/groups/verdict.ts';
import { deduplicated, readTopic } from '#test/support/kafka-events.ts';
import { kafkaBrokers } from '#test/support/kafka.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { seededRandom, testSeed } from '#test/support/random.ts';

/** `PLUMBLINE_TEST_GROUP_EVENTS=100000` for the full run, of four minutes. */
const EVENTS = Number(process.env['PLUMBLINE_TEST_GROUP_EVENTS'] ?? 20_000);
/** `PLUMBLINE_TEST_GROUP_LOG=kafka` for a log in Kafka. */
const LOG = process.env['PLUMBLINE_TEST_GROUP_LOG'] ?? 'postgres';
const EVENTS_PER_SECOND = 800;
const CHAOS_MS = (EVENTS / EVENTS_PER_SECOND) * 1_000;
const SETTLE_MS = 60_000;
const TENANTS = ['acme', 'globex', 'initech', 'umbrella'];
const GROUP = 'chaos';

let database: TestDatabase;
let sql: Sql;
let servers: Servers;
let members: Members | undefined;
let records: string;

beforeAll(async () => {
  database = await createTestDatabase();
  const env = LOG === 'kafka' ? { KAFKA_BROKERS: (await kafkaBrokers()).join() } : {};
  servers = await startServers(database.url, { EVENT_LOG: LOG, ...env });
  sql = connect(database.url, { applicationName: 'test', maxConnections: 4 });
  await createTenants(sql, TENANTS);
  records = await mkdtemp(join(tmpdir(), 'plumbline-records-'));
});

afterAll(async () => {
  await members?.stop();
  await servers?.stop();
  await sql?.end();
  await database?.drop();
  if (records) await rm(records, { recursive: true });
});

describe('the proof', () => {
  const log: LoggedEvent[] = [1, 2, 3].map((seq) => ({ lane: '1.0', seq, uid: seq === 2 ? 'b' : 'a' }));
  const delivered = (seq: number, fence: number, atMs: number, other: Partial<Delivered> = {}): Delivered => {
    const uid = seq === 2 ? 'b' : 'a';
    return { what: 'delivered', atMs, member: `m${fence}`, lane: '1.0', fence, seq, uid, attempt: 1, ...other };
  };
  const ack = (seq: number, fence: number, atMs: number, result?: 'Acked' | 'Fenced'): RecordLine[] => {
    const id = `${seq} ${fence} ${atMs}`;
    const sent: Sent = { what: 'ack', atMs, id, member: `m${fence}`, lane: '1.0', fence, seq };
    return [sent, { what: 'answered', id, results: result && [result] }];
  };
  const before = [delivered(1, 1, 1), delivered(2, 1, 2), ...ack(1, 1, 3, 'Acked')];
  const after = [delivered(2, 2, 4, { attempt: 2 }), delivered(3, 2, 5), ...ack(3, 2, 6, 'Acked')];
  const judged = (lines: readonly RecordLine[], parked: readonly LoggedEvent[] = []): readonly string[] =>
    judge({ records: lines, log, parked, maxAttempts: 3 }).violations;

  test('takes what comes again, an ack without an answer, and one that is refused', () => {
    expect(judged([...before, ...after, ...ack(2, 1, 7, 'Fenced')])).toEqual([]);
    expect(judged([...before.slice(0, 2), ...ack(1, 1, 3), ...after])).toEqual([]);
  });

  test('takes a parked event for done', () => {
    expect(judged([delivered(1, 1, 1), delivered(3, 1, 2), ...ack(3, 1, 3, 'Acked')], log.slice(1, 2))).toEqual([]);
  });

  test.each<[string, readonly RecordLine[]]>([
    ['two members have one fence', [...before, ...after, delivered(3, 2, 6, { member: 'm1' })]],
    ['an event is left out', [...before, delivered(3, 2, 5), ...ack(3, 2, 6, 'Acked')]],
    ['an event is confirmed by a member that did not have it', [...before, ...ack(3, 2, 6, 'Acked')]],
    ['an event is never confirmed', [...before, ...after.slice(0, 2), ...ack(2, 2, 6, 'Acked')]],
    ['an old fence confirms late', [...before, ...after, ...ack(2, 1, 7, 'Acked')]],
    [
      'an old fence confirms behind a newer one',
      [...before, ...after.slice(0, 2), ...ack(2, 2, 6, 'Acked'), ...ack(3, 1, 3.5, 'Acked')],
    ],
    [
      'events of a lane change places',
      [delivered(2, 1, 1), delivered(1, 1, 2), delivered(3, 1, 3), ...ack(3, 1, 4, 'Acked')],
    ],
    ['an event comes too often', [...before, delivered(2, 2, 4, { attempt: 4 }), ...after.slice(1)]],
    ['an event comes in a lane that is not its own', [...before, ...after, delivered(3, 2, 7, { seq: 4 })]],
  ])('notices when %s', (_, lines) => {
    expect(judged(lines)).not.toEqual([]);
  });
});

test(
  'members and servers that are killed and frozen at any moment deal with every event, one member of a lane at a time',
  { timeout: CHAOS_MS + SETTLE_MS + 60_000 },
  async () => {
    const random = seededRandom(testSeed());
    const hint = `PLUMBLINE_TEST_SEED=${random.seed}`;
    const grant = { roles: ['viewer'], tenants: TENANTS, subject: 'chaos', ttlSeconds: 3_600 } as const;
    members = startMembers({
      records,
      query: `group=${GROUP}&tenants=${TENANTS.join()}&window=32&ackWaitMs=2000&maxAttempts=${MAX_ATTEMPTS}`,
      token: await servers.any().token(grant),
      random: random.fork(),
    });
    const tell = (): void => members?.tell(servers.addresses());
    tell();
    const calm = new AbortController();
    const beganMs = performance.now();
    const chaos = [members.harass(calm.signal), servers.harass(random.fork(), calm.signal, tell)];
    await makeChanges({
      sql,
      tenants: TENANTS,
      events: EVENTS,
      eventsPerSecond: EVENTS_PER_SECOND,
      random: random.fork(),
    });
    calm.abort();
    await Promise.all(chaos);
    const calmMs = performance.now();
    await expect.poll(unconfirmed, { timeout: SETTLE_MS, interval: 250, message: hint }).toEqual([]);
    const settledMs = performance.now();
    await members.stop();

    const log = await readLog();
    const parked = await readParked();
    const lines = await readRecords(records);
    const findings = judge({ records: lines, log, parked, maxAttempts: MAX_ATTEMPTS });
    const poison = log.filter(({ uid, seq }) => isPoison(uid, seq));
    const { violations, ...figures } = findings;
    console.log(
      `${hint}: ${log.length} events of the log ${LOG} in ${Math.round(calmMs - beganMs)} ms of chaos, settled after ` +
        `${Math.round(settledMs - calmMs)} ms; members ${JSON.stringify(members.tally)}, servers ` +
        `${JSON.stringify(servers.tally)}; ${JSON.stringify(figures)}; parked ${parked.length}, poison ${poison.length}`,
    );
    expect(violations.slice(0, 20), hint).toEqual([]);
    expect(members.tally.deaths, hint).toEqual([]);
    const parkedPlaces = new Set(parked.map(({ lane, seq }) => `${lane} ${seq}`));
    expect(
      poison.filter(({ lane, seq }) => !parkedPlaces.has(`${lane} ${seq}`)),
      hint,
    ).toEqual([]);
    // Otherwise nothing was tried.
    const { killed, frozen, left } = members.tally;
    expect(Math.min(killed, frozen, left, servers.tally.killed, servers.tally.frozen, poison.length)).toBeGreaterThan(
      0,
    );
    expect(findings.fates['ack Fenced'], hint).toBeGreaterThan(0);
    expect(log.length).toBeGreaterThanOrEqual(EVENTS);
  },
);

/** What is to be done yet, lane by lane, once all is published. */
async function unconfirmed(): Promise<readonly string[]> {
  const rows = await sql<{ what: string }[]>`
    select 'unpublished' as what from plumbline.outbox
    union all select concat_ws(' ', s.id || '.' || l.lane, 'of member', l.member, 'fence', l.fence, 'confirmed', l.confirmed_seq,
      'delivered', l.delivered_seq, 'next', l.next_member, 'head', f.last_seq)
    from plumbline.stream s join plumbline.frontier f on f.stream = s.id left join plumbline.group_lane l on l.stream = s.id
    where s.tenant = any (${TENANTS}) and coalesce(l.confirmed_seq, 0) < f.last_seq`;
  return rows.map(({ what }) => what);
}

async function readLog(): Promise<LoggedEvent[]> {
  const rows = LOG === 'kafka' ? await readTopics() : await readTable();
  expect(LANES_PER_STREAM).toBe(16);
  return rows.map(({ stream, seq, uid }) => ({ lane: `${stream}.${laneOf(uid)}`, seq: Number(seq), uid }));
}

interface LoggedRow {
  readonly stream: bigint;
  readonly seq: bigint;
  readonly uid: string;
}

async function readTable(): Promise<readonly LoggedRow[]> {
  return sql<LoggedRow[]>`
    select e.stream, e.seq, e.uid from plumbline.event_log e join plumbline.stream s on s.id = e.stream
    where s.tenant = any (${TENANTS}) order by e.stream, e.seq`;
}

/** The key of a record is the uid. */
async function readTopics(): Promise<readonly LoggedRow[]> {
  const topics = await sql<{ stream: bigint; topic: string }[]>`
    select s.id as stream, f.topic from plumbline.stream s join plumbline.frontier f on f.stream = s.id
    where s.tenant = any (${TENANTS}) order by s.id`;
  const brokers = await kafkaBrokers();
  const rows: LoggedRow[] = [];
  for (const { stream, topic } of topics) {
    const records = deduplicated(await readTopic(brokers, topic));
    rows.push(...records.map(({ seq, key = '' }) => ({ stream, seq: BigInt(seq), uid: key })));
  }
  return rows;
}

async function readParked(): Promise<{ lane: string; seq: number }[]> {
  const rows = await sql<{ stream: bigint; lane: number; seq: bigint }[]>`
    select stream, lane, seq from plumbline.group_dead_letter`;
  return rows.map(({ stream, lane, seq }) => ({ lane: `${stream}.${lane}`, seq: Number(seq) }));
}
