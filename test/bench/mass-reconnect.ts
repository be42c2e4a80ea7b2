/**
 * 2,000 watchers lose their server at once, and come back when they were told to: how long after it is ready again until
 * all have their READY, and what they ask of the database.
 */

import { connect } from 'node:net';

import { createWidgets, headCursor, type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { type Finding, milliseconds, percentile } from '#test/bench/report.ts';

const WATCHERS = 2_000;
const AT_ONCE = 50;
const MISSED = 500;
const GOAL_MS = 5_000;

interface Returning {
  /** When its READY came, by performance.now(); undefined while it is away. */
  readonly readyAtMs: number | undefined;
  /** Frames since it came back, the opening ones among them. */
  readonly frames: number;
  close(): void;
}

export async function benchReconnect(instance: Instance): Promise<readonly Finding[]> {
  await createWidgets(instance.sql, MISSED);
  await published(instance.sql);
  return [await restartWith(instance, 0), await restartWith(instance, MISSED)];
}

async function restartWith(instance: Instance, missed: number): Promise<Finding> {
  const cursor = await headCursor(instance);
  if (missed > 0) {
    await instance.sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'n', random())
      where kind = 'Widget' and tenant = ${TENANT}`;
    await published(instance.sql);
  }
  const clients: Returning[] = [];
  while (clients.length < WATCHERS) {
    const batch = Array.from({ length: AT_ONCE }, () => startReturning(instance, cursor));
    await until(() => batch.every(({ readyAtMs }) => readyAtMs !== undefined));
    clients.push(...batch);
  }
  const before = await looksAtLog(instance);
  await instance.restart();
  const readyAtMs = performance.now();
  await until(() => clients.every((client) => (client.readyAtMs ?? 0) > readyAtMs - GOAL_MS && client.frames > 0));
  const backMs = clients.map((client) => Math.max(0, (client.readyAtMs ?? Infinity) - readyAtMs));
  await until(() => clients.every(({ frames }) => frames >= 3 + missed));
  const caughtUpMs = performance.now() - readyAtMs;
  const after = await looksAtLog(instance);
  for (const client of clients) client.close();
  const allMs = Math.max(...backMs);
  return {
    what: `${WATCHERS} watchers after a restart, ${missed} events behind`,
    figure:
      `half of them back after ${milliseconds(percentile(backMs, 0.5))}, all after ${milliseconds(allMs)}` +
      `${missed > 0 ? `, with all events after ${milliseconds(caughtUpMs)}` : ''}; ${after - before} looks into the log`,
    goal: `≤ ${GOAL_MS} ms`,
    met: allMs <= GOAL_MS,
  };
}

/** A client that comes back as its server told it, always with the same cursor. */
function startReturning({ url, headers }: Instance, cursor: string): Returning {
  const { hostname, port } = new URL(url);
  let retryMs = 1_000;
  let isClosed = false;
  let endsInLine = false;
  let socket = open();
  const state = {
    readyAtMs: undefined as number | undefined,
    frames: 0,
    close() {
      isClosed = true;
      socket.destroy();
    },
  };
  return state;

  function open(): ReturnType<typeof connect> {
    const opened = connect({ host: hostname, port: Number(port), noDelay: true });
    opened.write(
      `GET /watch/v1/events?tenants=${TENANT} HTTP/1.1\r\nhost: ${hostname}\r\n` +
        `authorization: ${headers.authorization}\r\nlast-event-id: ${cursor}\r\n\r\n`,
    );
    opened.on('error', () => undefined);
    opened.on('data', take);
    opened.once('close', () => {
      state.readyAtMs = undefined;
      state.frames = 0;
      if (!isClosed) setTimeout(() => (socket = open()), retryMs);
    });
    return opened;
  }

  function take(chunk: Buffer): void {
    if (state.readyAtMs === undefined) {
      const text = chunk.toString('latin1');
      retryMs = Number(/\nretry: (\d+)\n/.exec(text)?.[1] ?? retryMs);
      if (text.includes('event: READY')) state.readyAtMs = performance.now();
    }
    // An empty line ends a frame, also where it lies in two reads.
    if (endsInLine && chunk[0] === 10) state.frames += 1;
    for (let at = chunk.indexOf('\n\n'); at >= 0; at = chunk.indexOf('\n\n', at + 2)) state.frames += 1;
    endsInLine = chunk.at(-1) === 10 && chunk.at(-2) !== 10;
  }
}

/** How often the log's tables were looked into, by any statement. The last ones are counted a second late. */
async function looksAtLog({ sql }: Instance): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const [row] = await sql<{ looks: number }[]>`
    select sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int as looks
    from pg_stat_user_tables where schemaname = 'plumbline' and relname like 'event_log%'`;
  return row?.looks ?? 0;
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 20));
}
