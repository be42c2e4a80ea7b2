/** Resume: 10,000 missed events to one client, from a short log and from a long one. */

import { type Instance, PAD, TENANT, createWidgets, headCursor, published } from '#test/bench/instance.ts';
import { openRawStream } from '#test/bench/raw-stream.ts';
import { type Finding, median, milliseconds } from '#test/bench/report.ts';

const MISSED = 10_000;
const OLDER = 200_000;
const ROUNDS = 5;

export async function benchResume(instance: Instance): Promise<readonly Finding[]> {
  const { sql } = instance;
  await createWidgets(sql, 1_000);
  await published(sql);
  const short = await roundsOf(instance);
  await change(instance, OLDER);
  const long = await roundsOf(instance);
  return [
    {
      what: `resume of ${MISSED} missed events, log in ${instance.log}`,
      figure: milliseconds(short),
      goal: '≤ 400 ms',
      met: short <= 400,
    },
    {
      what: `the same, in a log of ${OLDER} more events`,
      figure: milliseconds(long),
      ratio: `${(long / short).toFixed(2)}× the short log`,
      goal: 'independent of the log’s length',
      met: long / short < 1.25,
    },
  ];
}

async function roundsOf(instance: Instance): Promise<number> {
  const cursor = await headCursor(instance);
  await change(instance, MISSED);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await resume(instance, cursor));
  return median(times);
}

async function resume({ url, headers }: Instance, cursor: string): Promise<number> {
  const startedAt = performance.now();
  let received = 0;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const path = `/watch/v1/events?tenants=${TENANT}&from=${cursor}`;
  const stream = await openRawStream(url, path, headers, (frames) => {
    received += frames;
    // The opening comment, the time to wait and READY come first.
    if (received >= MISSED + 3) resolve();
  });
  await done;
  const elapsed = performance.now() - startedAt;
  stream.close();
  return elapsed;
}

/** Each statement changes all of the thousand widgets once. */
async function change({ sql }: Instance, events: number): Promise<void> {
  for (let n = 0; n < events / 1_000; n += 1) {
    await sql`update plumbline.resource set spec = jsonb_build_object('size', ${n % 1000}::int, 'pad', ${PAD}::text, 'n', random())
      where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT}`;
  }
  await published(sql);
}
