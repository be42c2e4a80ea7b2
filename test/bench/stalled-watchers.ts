/**
 * What others do to a watcher: the times from commit to SSE client beside sockets that take nothing, and beside a watcher
 * that is a million events behind, each next to the same without them.
 */

import { createWidgets, headCursor, type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { pace } from '#test/bench/pace.ts';
import { openRawStream, type RawStream } from '#test/bench/raw-stream.ts';
import { type Finding, median, milliseconds, percentile } from '#test/bench/report.ts';
import { startChild } from '#test/support/child.ts';

const OTHERS = 50;
const EVENTS_PER_SECOND = 200;
const SECONDS = 6;
const ROUNDS = 9;
const STALLED = [1, 1_000];
const BEHIND = 1_000_000;
const WIDGETS = 1_000;
/** Of 1 KB: more than the network takes for a client that reads nothing. */
const FILLING = 8_000;
const PATH = `/watch/v1/events?tenants=${TENANT}`;
const GOAL = 1.2;

interface Trouble {
  readonly what: string;
  /** @returns ends it. */
  begin(): Promise<() => void>;
}

export async function benchStall(instance: Instance): Promise<readonly Finding[]> {
  await createWidgets(instance.sql, WIDGETS);
  await published(instance.sql);
  const cursor = await headCursor(instance);
  const findings: Finding[] = [];
  await measure(instance);
  for (const count of STALLED) {
    findings.push(
      await compare(instance, {
        what: `${count} stalled sockets`,
        begin: () => stall(instance, count),
      }),
    );
  }
  await change(instance, BEHIND, '');
  findings.push(
    await compare(instance, {
      what: `a watcher ${BEHIND} events behind`,
      async begin() {
        const { authorization = '' } = instance.headers;
        // Not in this process: it would be busy with it, and late itself.
        const client = startChild('test/bench/reading-client.ts', [
          instance.url,
          `${PATH}&from=${cursor}`,
          authorization,
        ]);
        await client.nextLine();
        return () => client.kill('SIGKILL');
      },
    }),
  );
  return findings;
}

async function compare(instance: Instance, { what, begin }: Trouble): Promise<Finding> {
  const without: number[] = [];
  const beside: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    without.push(percentile(await measure(instance), 0.99));
    const end = await begin();
    beside.push(percentile(await measure(instance), 0.99));
    end();
    // What it left behind is taken away.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
  const ratio = median(beside.map((p99, round) => p99 / (without[round] ?? Number.NaN)));
  return {
    what: `commit → SSE, ${OTHERS} watchers beside ${what}`,
    figure: `p99 ${beside.map(milliseconds).join(', ')} (without: ${without.map(milliseconds).join(', ')})`,
    ratio: `${ratio.toFixed(2)}×`,
    goal: `≤ ${GOAL}×`,
    met: ratio <= GOAL,
  };
}

/** Sockets that read nothing, for whom the server has more than the network takes. */
async function stall(instance: Instance, count: number): Promise<() => void> {
  const streams: RawStream[] = [];
  while (streams.length < count) {
    const batch = Array.from({ length: Math.min(50, count - streams.length) }, () =>
      openRawStream(instance.url, PATH, instance.headers),
    );
    streams.push(...(await Promise.all(batch)));
  }
  for (const stream of streams) stream.pause();
  await change(instance, FILLING, PAD);
  return () => {
    for (const stream of streams) stream.close();
  };
}

/** Each statement changes all widgets once. */
async function change({ sql }: Instance, events: number, pad: string): Promise<void> {
  for (let n = 0; n < events / WIDGETS; n += 1) {
    await sql`update plumbline.resource set spec = jsonb_build_object('size', ${n % 1_000}::int, 'pad', ${pad}::text, 'n', random())
      where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT}`;
    if (n % 50 === 0) await published(sql);
  }
  await published(sql);
}

/** Milliseconds from before the write until each of the others has it. */
async function measure({ sql, url, headers }: Instance): Promise<readonly number[]> {
  const sentAtMs = new Map<string, number>();
  const latencies: number[] = [];
  const streams = await Promise.all(Array.from({ length: OTHERS }, () => openRawStream(url, PATH, headers, take)));
  const total = EVENTS_PER_SECOND * SECONDS;
  const writes: Promise<unknown>[] = [];
  await pace(EVENTS_PER_SECOND, total, (n) => {
    const mark = `m${n}`;
    sentAtMs.set(mark, performance.now());
    writes.push(
      sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'mark', ${mark}::text)
        where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name = ${`w${(n % 100) + 1}`}`.execute(),
    );
  });
  await Promise.all(writes);
  const deadlineMs = performance.now() + 10_000;
  while (latencies.length < total * OTHERS && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  for (const stream of streams) stream.close();
  if (latencies.length < total * OTHERS * 0.99) throw new Error(`${latencies.length} of ${total * OTHERS} events came`);
  return latencies;

  function take(_frames: number, chunk: Buffer): void {
    const nowMs = performance.now();
    for (const [, mark = ''] of chunk.toString('latin1').matchAll(/"mark": ?"([^"]+)"/g)) {
      const sent = sentAtMs.get(mark);
      if (sent !== undefined) latencies.push(nowMs - sent);
    }
  }
}
