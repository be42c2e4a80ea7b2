/**
 * One whole run of servers, publishers, resident and scheduled, that are killed, writers, and watchers that come and go;
 * and the verdict.
 */

import { connect, type Sql } from '#adapters/postgres/client.ts';
import type { Target } from '#test/http/target.ts';
import { judgeLog } from '#test/support/kafka-topic.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { type Random, seededRandom } from '#test/support/random.ts';
import { checkOrdering, type Run, type Violation } from '#test/property/ordering-checker.ts';
import { runApiWriter } from '#test/property/ordering/api-writer.ts';
import { type ChaosReport, runChaos } from '#test/property/ordering/chaos.ts';
import { type Deploy, type Deployment, twoInstances } from '#test/property/ordering/deployment.ts';
import { createFollowers } from '#test/property/ordering/followers.ts';
import { runRawWriter } from '#test/property/ordering/raw-writer.ts';
import { runStoreWriter } from '#test/property/ordering/store-writer.ts';
import { createLedger, installWitness, type Ledger, readHistory } from '#test/property/ordering/witness.ts';

export interface ScenarioOptions {
  readonly seed: number;
  /** Of Kafka, where the events go. @default into PostgreSQL */
  readonly brokers?: readonly string[];
  /** @default two of `npm start` */
  readonly deploy?: Deploy;
  /** Writers stop when this many changes were committed. */
  readonly changes: number;
  /** SQL, run before anything is written: breaks what the checker must find broken. */
  readonly sabotage?: string;
  /** How long publishers and watchers may take at the end for what they lack. @default 60,000 */
  readonly patienceMs?: number;
}

export interface ScenarioReport {
  readonly violations: readonly Violation[];
  /** What is wrong with Kafka's topics. */
  readonly logViolations: readonly string[];
  /** Records in Kafka's topics that readers drop, because they had their number already. */
  readonly repeated: number;
  /** Committed, as the witness saw it. */
  readonly changes: number;
  /** By all watchers together. */
  readonly received: number;
  readonly connections: number;
  /** Events that workerd was seen to publish. */
  readonly publishedAtEdge: number;
  readonly chaos: ChaosReport;
}

const TENANTS = Array.from({ length: 17 }, (_, index) => `tenant-${index}`);
const RAW_WRITERS = 6;
const STORE_WRITERS = 2;
const API_WRITERS = 3;

export async function runScenario(options: ScenarioOptions): Promise<ScenarioReport> {
  const database = await createTestDatabase();
  const sql = connect(database.url, { applicationName: 'test', maxConnections: STORE_WRITERS + 2 });
  // The instance's own first write, the tenant that is in every installation, is a change like any other.
  await installWitness(sql);
  const { deploy = twoInstances(logOf(options)) } = options;
  let deployment: Deployment | undefined;
  try {
    deployment = await deploy(database.url, sql);
    if (options.sabotage !== undefined) await sql.unsafe(options.sabotage);
    await createTenants(sql, TENANTS);
    return { ...(await play(options, database.url, sql, deployment)), publishedAtEdge: deployment.publishedAtEdge };
  } finally {
    await deployment?.stop();
    await sql.end({ timeout: 5 });
    await database.drop();
  }
}

function logOf({ brokers }: ScenarioOptions): Record<string, string> {
  return brokers ? { EVENT_LOG: 'kafka', KAFKA_BROKERS: brokers.join() } : {};
}

async function play(
  { seed, changes, sabotage, patienceMs = 60_000, brokers }: ScenarioOptions,
  databaseUrl: string,
  sql: Sql,
  { servers, isOne, freezable, publishers }: Deployment,
): Promise<Omit<ScenarioReport, 'publishedAtEdge'>> {
  const random = seededRandom(seed);
  const ledger = createLedger();
  const followers = createFollowers({ servers, roam: isOne, tenants: TENANTS, random: random.fork() });
  const confusing = new AbortController();
  let chaos: ReturnType<typeof runChaos> | undefined;
  try {
    await followers.startEarly();
    chaos = runChaos({ publishers, sql, random: random.fork(), freezable, brokers }, confusing.signal);
    await write({
      databaseUrl,
      sql,
      random: random.fork(),
      ledger,
      changes,
      apis: isOne ? servers : [],
      onEighth: () => followers.startLate(),
    });
    confusing.abort();
    const { report } = await chaos;
    await writeLast(sql);
    const heads = await untilPublished(sql, patienceMs);
    await followers.untilReached(heads, patienceMs);
    const unexpected = await followers.stop();
    // Cursors of what a broken publisher did can be beyond its log: it is found out by what was received.
    if (unexpected.length > 0 && sabotage === undefined) throw new Error(unexpected.join('\n'));
    const log = brokers ? await judgeLog(sql, brokers) : undefined;
    const runs = [log?.run ?? (await logAsRun(sql)), ...followers.runs()];
    const history = await readHistory(sql, ledger);
    return {
      violations: checkOrdering(history, runs),
      logViolations: log?.violations ?? [],
      repeated: log?.repeated ?? 0,
      changes: history.length,
      received: runs.slice(1).reduce((sum, run) => sum + run.events.length, 0),
      connections: followers.connections,
      chaos: report,
    };
  } finally {
    confusing.abort();
    await chaos?.then(({ end }) => end()).catch(() => undefined);
    await followers.stop().catch(() => undefined);
  }
}

interface WriteOptions {
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly random: Random;
  readonly ledger: Ledger;
  readonly changes: number;
  /** Servers that are written to over HTTP as well. */
  readonly apis: readonly Target[];
  /** Called whenever another eighth of the changes is committed. */
  readonly onEighth: () => Promise<void>;
}

async function write({ databaseUrl, sql, random, ledger, changes, apis, onEighth }: WriteOptions): Promise<void> {
  const stopping = new AbortController();
  const shared = { tenants: TENANTS, ledger };
  const writers = Promise.all([
    ...Array.from({ length: RAW_WRITERS }, (_, index) =>
      runRawWriter({ ...shared, databaseUrl, name: `writer-${index}`, random: random.fork() }, stopping.signal),
    ),
    ...Array.from({ length: STORE_WRITERS }, () =>
      runStoreWriter({ ...shared, sql, random: random.fork() }, stopping.signal),
    ),
    ...Array.from({ length: apis.length > 0 ? API_WRITERS : 0 }, () =>
      runApiWriter({ ...shared, servers: apis, random: random.fork() }, stopping.signal),
    ),
  ]);
  const failed = writers.then(() => undefined);
  try {
    for (let eighths = 1; eighths <= 8;) {
      const committed = await Promise.race([countChanges(sql), failed]);
      if (committed === undefined) return;
      if (committed < (changes * eighths) / 8) continue;
      eighths += 1;
      await Promise.race([onEighth(), failed]);
    }
  } finally {
    stopping.abort();
    await writers;
  }
}

async function countChanges(sql: Sql): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 250));
  const [row] = await sql<{ count: bigint }[]>`select count(*) from witness.change`;
  return Number(row?.count ?? 0n);
}

/** An event for every stream, so that who waits for the end of each knows it by an event. */
async function writeLast(sql: Sql): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select tenant, 'example.dev', 'Widget', 'last' from unnest(${TENANTS}::text[]) tenant
    union all select 'system', 'plumbline.dev', 'Tenant', 'last'`;
}

/** The logs' heads by tenant, once nothing waits to be published, or the time is over. */
async function untilPublished(sql: Sql, patienceMs: number): Promise<ReadonlyMap<string, bigint>> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    // A topic that becomes ready is one more change of its Tenant; so is what a controller is about to tell of it.
    const [row] = await sql<{ waiting: boolean }[]>`select exists (select from plumbline.outbox)
      or exists (select from plumbline.topic where ready_at is null and removed_at is null)
      or exists (select from plumbline.touch)
      or exists (select from plumbline.work_item where class < 3)
      or exists (select from plumbline.pass_lease where expires_at > clock_timestamp()) as waiting`;
    if (!row?.waiting) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const heads = await sql<{ tenant: string; seq: bigint }[]>`
    select s.tenant, f.last_seq as seq from plumbline.frontier f join plumbline.stream s on s.id = f.stream
    where f.last_seq > 0`;
  return new Map(heads.map(({ tenant, seq }) => [tenant, seq]));
}

/** What lies in the log itself, as if it had been watched. */
async function logAsRun(sql: Sql): Promise<Run> {
  const events = await sql<(Run['events'][number] & { type: string })[]>`
    select tenant, seq, event_id as id, uid, type, resource_version as "resourceVersion"
    from plumbline.event_log order by stream, seq`;
  return { name: 'the log', tenants: '*', start: 'origin', events };
}
