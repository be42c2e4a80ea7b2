/** One statement that changes 100,000 rows: how long until Kafka has all of it, and what the server takes meanwhile. */

import { createWidgets, type Instance, PAD, published, residentBytes, TENANT } from '#test/bench/instance.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';

const ROWS = 100_000;
const ROUNDS = 3;
const GOAL_MEBIBYTES = 150;

export async function benchBulkInKafka({ sql, pid }: Instance): Promise<readonly Finding[]> {
  await createWidgets(sql, ROWS);
  await published(sql);
  const seconds: number[] = [];
  let mostResident = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    await sql`update plumbline.resource set spec = jsonb_build_object('size', ${round}::int, 'pad', ${PAD}::text)
      where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT}`;
    const startedAt = performance.now();
    const sampler = setInterval(
      () => void residentBytes(pid).then((bytes) => (mostResident = Math.max(mostResident, bytes))),
      50,
    );
    await published(sql);
    clearInterval(sampler);
    seconds.push((performance.now() - startedAt) / 1000);
  }
  const mebibytes = Math.round(mostResident / 2 ** 20);
  return [
    {
      what: `a transaction of ${ROWS} rows, until all of it is in Kafka`,
      figure: `${median(seconds).toFixed(1)} s, ${rate(ROWS / median(seconds))}; server process at most ${mebibytes} MiB`,
      goal: `≤ 8 s, ≤ ${GOAL_MEBIBYTES} MiB`,
      met: median(seconds) <= 8 && mebibytes <= GOAL_MEBIBYTES,
    },
  ];
}
