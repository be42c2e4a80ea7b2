/**
 * Groups: how much more two members do than one, how much the acks cost beside a watch of the same events, and what 200
 * groups on one stream cost. The second member is on a server process of its own.
 */

import { type Child, startChild } from '#test/support/child.ts';
import { cpuSeconds, createWidgets, type Instance, published, startInstance, TENANT } from '#test/bench/instance.ts';
import { openRawStream } from '#test/bench/raw-stream.ts';
import { type Finding, rate } from '#test/bench/report.ts';

const HANDLER_MS = 5;
const SHARED_EVENTS = 2_000;
const GOAL = 1.8;
const FAST_EVENTS = 20_000;
const CROWD = 200;
const CROWD_EVENTS = 200;
const SETTLE_MS = 2_000;

export async function benchGroups(instance: Instance): Promise<readonly Finding[]> {
  const second = await startInstance({ databaseUrl: instance.databaseUrl });
  try {
    await createWidgets(instance.sql, SHARED_EVENTS);
    const findings = [await shared(instance, second)];
    for (let events = SHARED_EVENTS; events < FAST_EVENTS; events += SHARED_EVENTS)
      await change(instance, SHARED_EVENTS);
    await published(instance.sql);
    return [...findings, await fast(instance), await crowd(instance)];
  } finally {
    await second.stop();
  }
}

async function shared(first: Instance, second: Instance): Promise<Finding> {
  const burst = (): Promise<void> => change(first, SHARED_EVENTS);
  const alone = await handleAll({
    group: 'alone&start=now',
    instances: [first],
    events: SHARED_EVENTS,
    handlerMs: HANDLER_MS,
    burst,
  });
  const together = await handleAll({
    group: 'together&start=now',
    instances: [first, second],
    events: SHARED_EVENTS,
    handlerMs: HANDLER_MS,
    burst,
  });
  const ratio = together / alone;
  return {
    what: `two members of a group, on two servers, ${HANDLER_MS} ms for each event`,
    figure: `${rate(together)} (one member ${rate(alone)})`,
    ratio: `${ratio.toFixed(2)}×`,
    goal: `≥ ${GOAL}×`,
    met: ratio >= GOAL,
  };
}

async function fast(instance: Instance): Promise<Finding> {
  const watched = await watchAll(instance, FAST_EVENTS);
  const cpuBefore = await cpuSeconds(instance.pid);
  const handled = await handleAll({ group: 'fast', instances: [instance], events: FAST_EVENTS, handlerMs: 0 });
  const cpu = (await cpuSeconds(instance.pid)) - cpuBefore;
  return {
    what: `one member of a group that acks what it gets, ${FAST_EVENTS} events of the log`,
    figure: `${rate(handled)}, ${rate(FAST_EVENTS / cpu)} per CPU second (a watch ${rate(watched)})`,
    ratio: `${(handled / watched).toFixed(2)}×`,
    goal: 'none',
    met: undefined,
  };
}

async function crowd(instance: Instance): Promise<Finding> {
  const watchers = await deliverLive(instance, () => '');
  const groups = await deliverLive(instance, (index) => `&group=crowd-${index}&start=now&window=1024`);
  return {
    what: `${CROWD} groups of one member on one stream, a burst of ${CROWD_EVENTS} events`,
    figure: `${rate(groups)} (${CROWD} watchers ${rate(watchers)})`,
    ratio: `${(groups / watchers).toFixed(2)}×`,
    goal: 'none',
    met: undefined,
  };
}

interface Work {
  /** Its name, and what else it is asked for with. */
  readonly group: string;
  /** Each has one member. */
  readonly instances: readonly Instance[];
  readonly events: number;
  readonly handlerMs: number;
  /** What the members are there for to wait for; without, the log has it. */
  readonly burst?: () => Promise<void>;
}

/** Events a second, from the first that is handled to the last. */
async function handleAll({ group, instances, events, handlerMs, burst }: Work): Promise<number> {
  const counts = instances.map(() => 0);
  const counted = Promise.withResolvers<void>();
  let startedAt: number | undefined;
  const members = instances.map(({ url, tokens }) => {
    const stream = `${url}/watch/v1/events?tenants=${TENANT}&group=${group}`;
    const args = [stream, `${url}/watch/v1/acks`, String(handlerMs)];
    return startChild('test/bench/group-member.ts', args, { env: { TOKEN: tokens.admin } });
  });
  for (const member of members) await member.nextLine();
  for (const [index, member] of members.entries()) void follow(member, index);
  if (burst) {
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    await burst();
  }
  await counted.promise;
  const seconds = (performance.now() - (startedAt ?? 0)) / 1000;
  for (const member of members) member.kill('SIGKILL');
  return events / seconds;

  async function follow(member: Child, index: number): Promise<void> {
    for (let line = await member.nextLine(); line !== undefined; line = await member.nextLine()) {
      startedAt ??= performance.now();
      counts[index] = Number(line);
      if (counts.reduce((sum, count) => sum + count, 0) >= events) counted.resolve();
    }
    counted.reject(new Error(`a member ended: ${(await member.exit).errors}`));
  }
}

/** Events a second that a watch from the beginning is sent. */
async function watchAll({ url, headers }: Instance, events: number): Promise<number> {
  const done = Promise.withResolvers<void>();
  let frames = 0;
  const startedAt = performance.now();
  const path = `/watch/v1/events?tenants=${TENANT}&from=earliest`;
  const stream = await openRawStream(url, path, headers, (count) => {
    frames += count;
    if (frames >= events) done.resolve();
  });
  await done.promise;
  stream.close();
  return (events * 1000) / (performance.now() - startedAt);
}

/** Frames a second that many streams are sent of one burst. */
async function deliverLive(instance: Instance, query: (index: number) => string): Promise<number> {
  const { url, tokens } = instance;
  const done = Promise.withResolvers<void>();
  let frames = -2 * CROWD;
  const streams = await Promise.all(
    Array.from({ length: CROWD }, (_, index) => {
      // Each owner has 100 groups at most.
      const headers = { authorization: `Bearer ${index % 2 === 0 ? tokens.viewer : tokens.editor}` };
      return openRawStream(url, `/watch/v1/events?tenants=${TENANT}${query(index)}`, headers, (count) => {
        frames += count;
        if (frames >= CROWD * CROWD_EVENTS) done.resolve();
      });
    }),
  );
  // Members are given their lanes.
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const startedAt = performance.now();
  await change(instance, CROWD_EVENTS);
  await done.promise;
  const seconds = (performance.now() - startedAt) / 1000;
  for (const stream of streams) stream.close();
  return (CROWD * CROWD_EVENTS) / seconds;
}

/** Each object once more, in one transaction. */
async function change({ sql }: Instance, count: number): Promise<void> {
  await sql`update plumbline.resource set spec = spec || jsonb_build_object('size', (spec ->> 'size')::int + 1)
    where tenant = ${TENANT} and name in (select 'w' || i from generate_series(1, ${count}::int) i)`;
}
