/** A scheduled publisher that is ended at any answer of the server, beside another one: nothing lost, nothing twice. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type ConnectOptions } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { type CrashPoints, startCrashPoints } from '#test/support/crash-points.ts';
import { type PreparedDatabase, prepareDatabase } from '#test/support/prepared-database.ts';

const TENANTS = ['one', 'two', 'three'];
const EACH = 2;

let database: PreparedDatabase;
let crashes: CrashPoints;

beforeAll(async () => {
  database = await prepareDatabase(TENANTS);
  crashes = await startCrashPoints();
});
afterAll(async () => {
  await crashes.stop();
  await database.close();
});

async function write(round: number): Promise<void> {
  await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select tenant, 'example.dev', 'Widget', 'w' || ${round}::int || '-' || n
    from unnest(${TENANTS}::text[]) tenant, generate_series(1, ${EACH}::int) n`;
}

/** Publishes over connections of its own, which end with it. @returns whether the call failed. */
async function publishAs(url: string, options: Partial<ConnectOptions> = {}): Promise<boolean> {
  const sql = connect(url, {
    applicationName: 'test publisher',
    maxConnections: 2,
    role: 'plumbline_worker',
    ...options,
  });
  try {
    await publishOnce({ outbox: postgresOutbox(sql) });
    return false;
  } catch {
    return true;
  } finally {
    await sql.end({ timeout: 0 });
  }
}

/** Streams whose numbers have a gap or an event twice, and how many events there are. */
async function judge(): Promise<{ readonly broken: unknown[]; readonly events: number }> {
  const broken = await database.sql`
    select stream from plumbline.event_log group by stream
    having min(seq) <> 1 or max(seq) <> count(*) or count(distinct event_id) <> count(*)`;
  const [row] = await database.sql<{ events: number }[]>`select count(*)::int as events from plumbline.event_log`;
  return { broken: [...broken], events: row?.events ?? 0 };
}

test.each([
  ['alone', false],
  ['while another one is at it', true],
])('wherever it is ended, %s, every event is in its stream once', async (_, isBeside) => {
  const proxied = Object.assign(new URL(database.url), { port: String(crashes.proxyPort) }).href;
  await publishAs(database.url);
  const { events: before } = await judge();
  let rounds = 0;
  let failed = 0;
  for (let answer = 1; ; answer += 1) {
    rounds += 1;
    await write(rounds + (isBeside ? 1_000 : 0));
    crashes.arm(answer);
    const [hasFailed] = await Promise.all([publishAs(proxied), isBeside ? publishAs(database.url) : false]);
    const { hasCut } = crashes;
    crashes.arm(Infinity);
    if (hasFailed) failed += 1;
    // Whoever comes next finds what is left, as soon as the server knows that the other one has ended.
    await expect.poll(publishRest, { timeout: 10_000 }).toBe(0);
    expect(await judge(), `answer ${answer}`).toEqual({ broken: [], events: before + rounds * TENANTS.length * EACH });
    if (!hasCut) break;
  }
  expect(failed).toBeGreaterThan(isBeside ? 0 : 3);
});

/** @returns how many events are still not published. */
async function publishRest(): Promise<number> {
  await publishAs(database.url);
  return (await database.sql`select from plumbline.outbox`).length;
}
