/** One statement that changes 100,000 rows: what capture adds to it, and how long until the log has all of it. */

import { createWidgets, type Instance, PAD, published, residentBytes, TENANT } from '#test/bench/instance.ts';
import { type Finding, median } from '#test/bench/report.ts';

const ROWS = 100_000;
const ROUNDS = 3;

export async function benchBulk(instance: Instance): Promise<readonly Finding[]> {
  const { sql } = instance;
  await createWidgets(sql, ROWS);
  await published(sql);
  const bare: number[] = [];
  const captured: number[] = [];
  const untilPublished: number[] = [];
  let mostResident = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    await sql`vacuum plumbline.resource`;
    await sql`alter table plumbline.resource disable trigger user`;
    bare.push(await timed(() => change(instance)));
    await sql`alter table plumbline.resource enable trigger user`;
    await sql`vacuum plumbline.resource`;
    captured.push(await timed(() => change(instance)));
    const sampler = setInterval(
      () => void residentBytes(instance.pid).then((bytes) => (mostResident = Math.max(mostResident, bytes))),
      50,
    );
    untilPublished.push(await timed(() => published(sql)));
    clearInterval(sampler);
  }
  const ratio = median(captured) / median(bare);
  const seconds = median(untilPublished) / 1000;
  return [
    {
      what: `one UPDATE of ${ROWS} rows`,
      figure: `${(median(captured) / 1000).toFixed(1)} s (bare ${(median(bare) / 1000).toFixed(1)} s)`,
      ratio: `${ratio.toFixed(2)}×`,
      goal: '≤ 2.2×',
      met: ratio <= 2.2,
    },
    {
      what: 'the same, until all of it is in the log',
      figure: `${seconds.toFixed(1)} s, ${Math.round(ROWS / seconds)} events/s; server process at most ${Math.round(mostResident / 2 ** 20)} MiB`,
      goal: '≤ 8 s',
      met: seconds <= 8,
    },
  ];
}

async function change({ sql }: Instance): Promise<void> {
  await sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'n', random())
    where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT}`;
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
