/** Commit → SSE client: open loop at 500 events a second, from before the write is sent to the receiver having it. */

import { type Instance, PAD, TENANT, createWidgets, published } from '#test/bench/instance.ts';
import { openRawStream } from '#test/bench/raw-stream.ts';
import { type Finding, milliseconds, percentile } from '#test/bench/report.ts';

const EVENTS_PER_SECOND = 500;
const SECONDS = 10;
const WATCHERS = [1, 100];
const GOALS = {
  postgres: { text: 'p50 ≤ 3 ms', p50: 3, p99: Infinity },
  kafka: { text: 'p50 ≤ 5 ms, p99 ≤ 20 ms', p50: 5, p99: 20 },
} as const;

export async function benchLatency(instance: Instance): Promise<readonly Finding[]> {
  await createWidgets(instance.sql, 100);
  await published(instance.sql);
  const findings: Finding[] = [];
  for (const watchers of WATCHERS) {
    await measure(instance, watchers, 1);
    const latencies = await measure(instance, watchers, SECONDS);
    const p50 = percentile(latencies, 0.5);
    const p99 = percentile(latencies, 0.99);
    const goal = GOALS[instance.log];
    findings.push({
      what: `commit → SSE at ${EVENTS_PER_SECOND}/s, ${watchers} watchers, log in ${instance.log}`,
      figure: `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}`,
      goal: goal.text,
      met: p50 <= goal.p50 && p99 <= goal.p99,
    });
  }
  return findings;
}

async function measure({ sql, url, headers }: Instance, watchers: number, seconds: number): Promise<readonly number[]> {
  const sentAt = new Map<string, number>();
  const latencies: number[] = [];
  const streams = await Promise.all(
    Array.from({ length: watchers }, () =>
      openRawStream(url, `/watch/v1/events?tenants=${TENANT}`, headers, (_, chunk) => {
        const now = performance.now();
        for (const [, mark] of chunk.toString('latin1').matchAll(/"mark": ?"([^"]+)"/g)) {
          const sent = sentAt.get(mark ?? '');
          if (sent !== undefined) latencies.push(now - sent);
        }
      }),
    ),
  );
  const total = EVENTS_PER_SECOND * seconds;
  const startedAt = performance.now();
  const writes: Promise<unknown>[] = [];
  for (let n = 0; n < total; n += 1) {
    const due = startedAt + (n * 1000) / EVENTS_PER_SECOND;
    while (performance.now() < due)
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    const mark = `m${n}`;
    sentAt.set(mark, performance.now());
    writes.push(
      sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'mark', ${mark}::text)
        where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name = ${`w${(n % 100) + 1}`}`.execute(),
    );
  }
  await Promise.all(writes);
  const deadline = performance.now() + 10_000;
  while (latencies.length < total * watchers && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 5));
  for (const stream of streams) stream.close();
  if (latencies.length < total * watchers)
    throw new Error(`${total * watchers - latencies.length} events did not arrive`);
  return latencies;
}
