/** Commit → SSE client for writes through the API: on workerd nothing but its kick tells the publisher of them. */

import { createHttpCaller } from '#test/bench/http-caller.ts';
import { createWidgets, type Instance, published, TENANT } from '#test/bench/instance.ts';
import { figure } from '#test/bench/edge-requests.ts';
import { pace } from '#test/bench/pace.ts';
import { openRawStream } from '#test/bench/raw-stream.ts';
import { type Finding, milliseconds, percentile } from '#test/bench/report.ts';

const OBJECTS = 50;
const WRITES_PER_SECOND = 10;
const SECONDS = 15;
const PATIENCE_MS = 10_000;

interface Delivery {
  /** From the capture in the database, microseconds before the commit, to the client. */
  readonly fromCommit: readonly number[];
  /** From before the request is sent. */
  readonly fromRequest: readonly number[];
}

/** @param how the edge reaches its database, for the reader */
export async function compareDelivery(node: Instance, edge: Instance, how: string): Promise<readonly Finding[]> {
  const theirs = await measure(node);
  const ours = await measure(edge);
  const whole = (one: Delivery): string => `from the request p50 ${milliseconds(percentile(one.fromRequest, 0.5))}`;
  return [
    {
      what: `commit → SSE on workerd by a kick after each of ${WRITES_PER_SECOND} writes/s, ${how}`,
      figure: `${figure(ours.fromCommit)}; ${whole(ours)} (on Node ${figure(theirs.fromCommit)}; ${whole(theirs)})`,
      ratio: `${(percentile(ours.fromCommit, 0.5) / percentile(theirs.fromCommit, 0.5)).toFixed(1)}×`,
      goal: '',
      met: undefined,
    },
  ];
}

async function measure(instance: Instance): Promise<Delivery> {
  await instance.sql`delete from plumbline.resource where kind = 'Widget'`;
  await createWidgets(instance.sql, OBJECTS);
  await published(instance.sql);
  await write(instance, 1);
  return write(instance, SECONDS);
}

async function write(instance: Instance, seconds: number): Promise<Delivery> {
  // Nobody has marked anything so before.
  const prefix = `${crypto.randomUUID()}-`;
  const sentAt = new Map<string, number>();
  const receivedAt = new Map<string, number>();
  let rest = '';
  const path = `/watch/v1/events?tenants=${TENANT}`;
  const stream = await openRawStream(instance.url, path, instance.headers, (_, chunk) => {
    const text = rest + chunk.toString('latin1');
    for (const [, mark = ''] of text.matchAll(/"mark": ?"([^"]+)"/g)) receivedAt.set(mark, now());
    rest = text.slice(text.lastIndexOf('\n\n'));
  });
  const total = WRITES_PER_SECOND * seconds;
  const caller = createHttpCaller(instance, WRITES_PER_SECOND);
  const writes: Promise<unknown>[] = [];
  await pace(WRITES_PER_SECOND, total, (n) => {
    const mark = `${prefix}${n}`;
    sentAt.set(mark, now());
    const object = `/apis/example.dev/v1/namespaces/${TENANT}/widgets/w${1 + (n % OBJECTS)}`;
    writes.push(caller.send('PATCH', object, { spec: { mark } }, 'application/merge-patch+json'));
  });
  await Promise.all(writes);
  const deadline = now() + PATIENCE_MS;
  while (receivedAt.size < total && now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  stream.close();
  caller.close();
  if (receivedAt.size < total) throw new Error(`${total - receivedAt.size} events did not arrive`);
  const events = await instance.sql<{ mark: string; at: number }[]>`
    select spec->>'mark' as mark, extract(epoch from occurred_at)::float8 * 1000 as at from plumbline.event_log
    where spec->>'mark' like ${`${prefix}%`}`;
  return {
    fromCommit: events.map(({ mark, at }) => (receivedAt.get(mark) ?? Number.NaN) - at),
    fromRequest: [...sentAt].map(([mark, at]) => (receivedAt.get(mark) ?? Number.NaN) - at),
  };
}

/** As the database's clock, which is that of the same machine. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
