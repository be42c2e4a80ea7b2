/** Publishers as processes that are killed and frozen at random moments and replaced, and connections that are cut. */

import type { Sql } from '#adapters/postgres/client.ts';
import { type Child, startChild } from '#test/support/child.ts';
import type { Random } from '#test/support/random.ts';
import type { Publishers } from '#test/property/ordering/deployment.ts';

export interface ChaosOptions {
  readonly publishers: Publishers;
  /** Of a superuser. */
  readonly sql: Sql;
  readonly random: Random;
  /** Processes that are frozen for a moment, and not killed. */
  readonly freezable: readonly Child[];
  /** Of Kafka, if the events go there. */
  readonly brokers?: readonly string[] | undefined;
}

export interface ChaosReport {
  killed: number;
  frozen: number;
  cut: number;
  /** Batches into Kafka that another publisher could take over while one was at it. */
  robbed: number;
}

const ROB_EVERY_MS = 50;

/** Until the signal aborts; then everything that it froze runs again, and publishers stay until `end`. */
export async function runChaos(
  { publishers: { modes, databaseUrl, directUrl }, sql, random, freezable, brokers }: ChaosOptions,
  signal: AbortSignal,
): Promise<{ readonly report: ChaosReport; readonly end: () => Promise<void> }> {
  const report: ChaosReport = { killed: 0, frozen: 0, cut: 0, robbed: 0 };
  const publishers = await Promise.all(modes.map(startPublisher));
  const robbing = brokers ? robPublishers() : undefined;
  while (!signal.aborted) {
    await pause(random.int(100, 900));
    await random.pick([
      killPublisher,
      killPublisher,
      killFrozen,
      freezePublisher,
      freezePublisher,
      freezeOther,
      cutConnection,
      cutConnection,
    ])();
  }
  await robbing;
  return {
    report,
    async end() {
      for (const publisher of publishers) publisher.end();
      await Promise.all(publishers.map((publisher) => publisher.exit));
    },
  };

  async function startPublisher(mode: string): Promise<Child> {
    const args = [databaseUrl, mode, ...(brokers ? [brokers.join()] : [])];
    const env = directUrl === undefined ? {} : { DATABASE_DIRECT_URL: directUrl };
    const child = startChild('test/support/publisher-process.ts', args, { env });
    if ((await child.nextLine()) !== 'ready')
      throw new Error(`a publisher did not start: ${(await child.exit).errors}`);
    return child;
  }

  async function killPublisher(): Promise<void> {
    const index = random.int(0, publishers.length - 1);
    publishers[index]?.kill('SIGKILL');
    report.killed += 1;
    publishers[index] = await startPublisher(modes[index] ?? 'resident');
  }

  async function killFrozen(): Promise<void> {
    random.pick(publishers).kill('SIGSTOP');
    await pause(random.int(50, 500));
    // It may not be the frozen one; that one wakes up in the past.
    await killPublisher();
    for (const publisher of publishers) publisher.kill('SIGCONT');
  }

  async function freezePublisher(): Promise<void> {
    await freeze(random.pick(publishers));
  }

  /** As if they took longer than their right to a batch lasts: others take it over while they are at it. */
  async function robPublishers(): Promise<void> {
    while (!signal.aborted) {
      const robbed = await sql`update plumbline.manifest set held_until = '-infinity' returning stream`;
      report.robbed += robbed.length;
      await pause(ROB_EVERY_MS);
    }
  }

  async function freezeOther(): Promise<void> {
    if (freezable.length > 0) await freeze(random.pick(freezable));
  }

  async function freeze(child: Child): Promise<void> {
    child.kill('SIGSTOP');
    report.frozen += 1;
    await pause(random.int(50, 1200));
    child.kill('SIGCONT');
  }

  /** Of publishers and of watching servers, in whatever they do. */
  async function cutConnection(): Promise<void> {
    const backends = await sql<{ pid: number }[]>`select pid from pg_stat_activity
      where datname = current_database() and application_name like 'plumbline%' and pid <> pg_backend_pid() order by pid`;
    if (backends.length === 0) return;
    await sql`select pg_terminate_backend(${random.pick(backends).pid})`;
    report.cut += 1;
  }
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
