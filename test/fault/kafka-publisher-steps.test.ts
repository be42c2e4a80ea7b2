import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Child, startChild } from '#test/support/child.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import { judgeLog, type LogVerdict } from '#test/support/kafka-topic.ts';
import { openConnection, type PreparedDatabase } from '#test/support/prepared-database.ts';
import { STEPS, type Step } from '#test/support/publisher-steps.ts';

/** Several streams, so that one is at the step when the process ends, and others are anywhere. */
const STREAMS = 3;
const RECORDS = 7;
const ROUNDS = 2;
const CASES: readonly Step[] = Array.from({ length: ROUNDS }, () => STEPS).flat();

describeKafka('a publisher into Kafka, between any two of its steps,', () => {
  let brokers: readonly string[];
  let database: PreparedDatabase;
  let survivor: Child;
  let tenants: readonly string[] = [];
  let written: string[] = [];
  let late: string[] = [];
  let last: LogVerdict | undefined;
  const report = { cases: 0, events: 0, repeated: 0 };

  beforeAll(async () => {
    brokers = await kafkaBrokers();
    database = await prepareKafkaDatabase(tenantsOf(0, 2 * CASES.length + 1), brokers);
    survivor = await startPublisher('commanded');
  });
  beforeEach(() => {
    tenants = tenantsOf(report.cases, 1);
    written = [];
    late = [];
    report.cases += 1;
  });
  afterEach(() => {
    for (const { events, repeated } of last?.topics ?? []) {
      report.events += events.length;
      report.repeated += repeated;
    }
  });
  afterAll(async () => {
    survivor?.end();
    await survivor?.exit;
    await database?.close();
    console.log(`${report.cases} publishers ended or froze: ${report.events} events, ${report.repeated} repeated`);
  });

  test.each(CASES)('may be killed: %s', async (step) => {
    const victim = await startPublisher('commanded');
    await write('a');
    await publish(victim);
    const commitLate = await writeLate();
    await write('b');
    victim.send(`SIGKILL ${step}`);
    expect((await victim.exit).signal).toBe('SIGKILL');
    await commitLate();
    await write('c');
    const promised = await manifests();
    await takeOver();
    const { topics } = await expectWhole();
    // Readers may have seen these.
    const numbered = topics.flatMap(({ stream, events }) => events.map(({ seq, id }) => `${stream}/${seq} ${id}`));
    expect(numbered).toEqual(expect.arrayContaining(promised));
  });

  test.each(CASES)('may freeze beyond its lease while another goes on, and thaw: %s', async (step) => {
    const victim = await startPublisher('commanded');
    await write('a');
    await publish(victim);
    const commitLate = await writeLate();
    await write('b');
    victim.send(`SIGSTOP ${step}`);
    expect(await victim.nextLine()).toBe(step);
    await commitLate();
    await write('c');
    await takeOver();
    await write('d');
    await takeOver();
    const before = await expectWhole();
    victim.kill('SIGCONT');
    await victim.nextLine();
    const after = await expectWhole();
    expect(eventsOf(after)).toEqual(eventsOf(before));
    expect(after.topics.map(({ lastSeq, lastPosition }) => [lastSeq, lastPosition])).toEqual(
      before.topics.map(({ lastSeq, lastPosition }) => [lastSeq, lastPosition]),
    );
    // And it can go on.
    await write('e');
    await publish(victim);
    await expectWhole();
    victim.end();
    await victim.exit;
  });

  test('is replaced by another that is there, once its lease has ended', async () => {
    const victim = await startPublisher('commanded');
    const resident = await startPublisher('resident');
    // Or it would be first.
    resident.kill('SIGSTOP');
    await write('a');
    victim.send('SIGKILL begun');
    await victim.exit;
    resident.kill('SIGCONT');
    const sinceMs = performance.now();
    await write('b');
    while ((await manifests()).length > 0 || (await isPending())) await tick();
    const tookMs = performance.now() - sinceMs;
    resident.end();
    await resident.exit;
    await expectWhole();
    console.log(`taken over after ${(tookMs / 1000).toFixed(1)} s`);
    expect(tookMs).toBeLessThan(20_000);
  });

  function tenantsOf(firstCase: number, cases: number): string[] {
    return Array.from({ length: cases * STREAMS }, (_, n) => `t${firstCase * STREAMS + n}`);
  }

  async function startPublisher(mode: string): Promise<Child> {
    const child = startChild('test/support/publisher-process.ts', [database.url, mode, brokers.join()]);
    expect(await child.nextLine()).toBe('ready');
    return child;
  }

  async function publish(publisher: Child): Promise<void> {
    publisher.send('');
    expect(Number(await publisher.nextLine())).toBeGreaterThan(0);
  }

  /** Some objects of each tenant, one by one: so their events are in this order. */
  async function write(mark: string): Promise<void> {
    const names = Array.from({ length: RECORDS }, (_, n) => `${mark}${n}`);
    written.push(...names);
    await database.sql`insert into plumbline.resource (tenant, api_group, kind, name)
      select tenant, 'example.dev', 'Widget', name
      from unnest(${[...tenants]}::text[]) tenant, unnest(${names}::text[]) with ordinality n (name, at)
      order by at, tenant`;
  }

  /** Another of each tenant, captured before what comes next, and visible once that is committed. */
  async function writeLate(): Promise<() => Promise<void>> {
    const sql = openConnection(database.url);
    await sql`begin`;
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      select tenant, 'example.dev', 'Widget', 'late' from unnest(${[...tenants]}::text[]) tenant`;
    late.push('late');
    return async function commitLate() {
      await sql`commit`;
      await sql.end();
    };
  }

  /** Every captured event is there, in order, each number is one event, and the frontier and the index are right. */
  async function expectWhole(): Promise<LogVerdict> {
    const verdict = await judgeLog(database.sql, brokers, tenants);
    expect(verdict.violations).toEqual([]);
    for (const { events, lastSeq } of verdict.topics) {
      const names = events.map(({ headers }) => String(headers['ce_subject']).split('/').at(-1) ?? '');
      expect(names.filter((name) => !late.includes(name))).toEqual(written);
      expect(names.filter((name) => late.includes(name))).toEqual(late);
      expect(lastSeq).toBe(BigInt(written.length + late.length));
    }
    expect(verdict.topics).toHaveLength(STREAMS);
    last = verdict;
    return verdict;
  }

  function eventsOf({ topics }: LogVerdict): unknown {
    return topics.map(({ events }) => events.map(({ seq, id, offset }) => [seq, id, offset]));
  }

  /** The numbers that unfinished batches have given: `stream/seq id`. */
  async function manifests(): Promise<string[]> {
    const rows = await database.sql<{ line: string }[]>`
      select m.stream || '/' || m.first_seq + n - 1 || ' ' || o.event_id as line
      from plumbline.manifest m, unnest(m.outbox_ids) with ordinality u (id, n), plumbline.outbox o
      where o.stream = m.stream and o.id = u.id`;
    return rows.map(({ line }) => line);
  }

  async function isPending(): Promise<boolean> {
    const [row] = await database.sql<{ pending: boolean }[]>`
      select exists (select from plumbline.outbox) as pending`;
    return row?.pending ?? false;
  }

  /** Again and again: a statement of the one that is gone may still be on its way, and begin a batch with a new lease. */
  async function takeOver(): Promise<void> {
    do {
      await database.sql`update plumbline.manifest set held_until = '-infinity'`;
      survivor.send('');
      await survivor.nextLine();
    } while (await isPending());
  }

  async function tick(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
