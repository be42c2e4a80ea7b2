/** Which log the events of this installation lie in: one choice for all its processes, kept in the database. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { asRole } from '#adapters/postgres/as-role.ts';

export type LogName = 'postgres' | 'kafka';

export interface LogChoice {
  readonly log: LogName;
  /** Another one after each switch. */
  readonly installation: string;
  /** Of the brokers that hold the topics; absent before the first. */
  readonly clusterId: string | null;
  /** The database is a copy of the one whose events lie in Kafka. */
  readonly isCopy: boolean;
}

/** What a process would have. */
export type WantedLog =
  | { readonly log: 'postgres' }
  | { readonly log: 'kafka'; readonly topicPrefix: string; readonly clusterId: string };

/** The database has another log, or other brokers. The message says what to do. */
export class LogMismatch extends Error {
  override readonly name = 'LogMismatch';
}

export async function readLogChoice(sql: Sql): Promise<LogChoice> {
  const [row] = await guarded(
    'log choice',
    () => sql<LogChoice[]>`
    select log, installation, cluster_id as "clusterId",
      log = 'kafka' and database_identity <> plumbline.database_identity() as "isCopy"
    from plumbline.log_choice`,
  );
  if (!row) throw new Error('plumbline.log_choice has no row');
  return row;
}

/**
 * Makes sure that the installation has this log. A new one, which never published an event, gets it.
 * @throws {LogMismatch} when its events are elsewhere.
 */
export async function chooseLog(databaseUrl: string, wanted: WantedLog): Promise<void> {
  await asOwner(databaseUrl, async (sql) => {
    const choice = await readLogChoice(sql);
    if (choice.log !== wanted.log) await assertNothingPublished(sql, choice.log, wanted.log);
    else if (choice.isCopy) throw copied();
    else assertSameCluster(wanted, choice);
    await adopt(sql, wanted);
  });
}

/**
 * The same for a login that cannot choose: the installation has this log already.
 * @throws {LogMismatch} when it has not, or its events are elsewhere.
 */
export async function assertLog(databaseUrl: string, wanted: WantedLog): Promise<void> {
  const options = { applicationName: 'plumbline log choice', role: 'plumbline_worker' } as const;
  const choice = await asRole(databaseUrl, options, readLogChoice);
  assertChosen(choice, wanted.log);
  assertSameCluster(wanted, choice);
}

/** @throws {LogMismatch} when the events of this installation are in another log, or those of another database's. */
export function assertChosen({ log, isCopy }: LogChoice, wanted: LogName): void {
  if (log !== wanted) {
    throw new LogMismatch(
      `EVENT_LOG is "${wanted}", but this installation has the log "${log}". Start with EVENT_LOG=${log}; ` +
        `or, as long as no event was published, run npm run set-up with EVENT_LOG=${wanted}`,
    );
  }
  if (isCopy) throw copied();
}

/** Moves the installation to this log, whatever it had; see switch_log. Returns the number of streams that were moved. */
export async function switchLog(databaseUrl: string, wanted: WantedLog): Promise<number> {
  return asOwner(databaseUrl, async (sql) => {
    const choice = await readLogChoice(sql);
    if (choice.log === wanted.log && !choice.isCopy) assertSameCluster(wanted, choice);
    return adopt(sql, wanted);
  });
}

async function adopt(sql: Sql, wanted: WantedLog): Promise<number> {
  const names = wanted.log === 'kafka' ? wanted : undefined;
  // One statement: names, brokers and log change together or not at all.
  const [row] = await sql<{ streams: number }[]>`
    select plumbline.switch_log(${wanted.log}, ${names?.topicPrefix ?? null}, ${names?.clusterId ?? null}) as streams`;
  return row?.streams ?? 0;
}

/** @throws {LogMismatch} when the topics of this installation are at other brokers. */
export function assertSameCluster(wanted: WantedLog, { clusterId }: Pick<LogChoice, 'clusterId'>): void {
  if (wanted.log !== 'kafka' || clusterId === null || clusterId === wanted.clusterId) return;
  throw new LogMismatch(
    `KAFKA_BROKERS leads to the cluster ${wanted.clusterId}, but the topics of this installation are in the cluster ` +
      `${clusterId}. Set KAFKA_BROKERS to that one; to begin anew in another, move to the PostgreSQL log first ` +
      `(npm run migrate-log -- --to postgres) and then to Kafka`,
  );
}

function copied(): LogMismatch {
  return new LogMismatch(
    'this database is a copy of another one, or was moved to another server: in the same topics, the events of both ' +
      'would be mixed. Give it topics of its own (npm run migrate-log -- --to kafka); watchers of this database that ' +
      'had not read everything list again',
  );
}

async function assertNothingPublished(sql: Sql, log: LogName, wanted: LogName): Promise<void> {
  const [row] = await sql<{ published: boolean }[]>`
    select exists (select from plumbline.frontier where last_seq > 0) as published`;
  if (!row?.published) return;
  throw new LogMismatch(
    `EVENT_LOG is "${wanted}", but the events of this installation lie in the log "${log}". ` +
      `Start it with EVENT_LOG=${log}, or stop all its servers and run: npm run migrate-log -- --to ${wanted}`,
  );
}

async function asOwner<T>(databaseUrl: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  return asRole(databaseUrl, { applicationName: 'plumbline log choice', role: 'plumbline_migrator' }, work);
}
