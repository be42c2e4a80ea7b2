/**
 * Fan-out to 1,000 watchers, beside a bare `res.write` server with frames of the same size: delivered frames a second,
 * and per second of the server process's CPU, which does not depend on what else the machine does.
 */

import { type Child, startChild } from '#test/support/child.ts';
import { cpuSeconds, createWidgets, type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { openRawStream, type RawStream } from '#test/bench/raw-stream.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';

const WATCHERS = 1_000;
const ROUNDS = 5;
const MODES: readonly Mode[] = [
  { name: 'one event, then the next when all have it', events: 1, repeats: 60, pace: 'now', goal: undefined },
  { name: 'live, single commits of 8 writers', events: 1000, repeats: 1, pace: 'live', goal: 1.5 },
  { name: 'in bursts of 200', events: 200, repeats: 3, pace: 'now', goal: 1.5 },
];
const WRITERS = 8;

interface Mode {
  readonly name: string;
  readonly events: number;
  readonly repeats: number;
  /** now: all events in one transaction; live: each in its own. */
  readonly pace: 'now' | 'live';
  readonly goal: number | undefined;
}

/** Of an event of the bench's widgets, beside the pad: the envelope and the metadata. */
const ENVELOPE_BYTES = 560;

interface Measured {
  readonly framesPerSecond: number;
  readonly framesPerCpuSecond: number;
}

export async function benchFanOut(instance: Instance): Promise<readonly Finding[]> {
  await createWidgets(instance.sql, 200);
  await published(instance.sql);
  const bare = startChild('test/bench/bare-sse-server.ts', []);
  const bareUrl = `http://127.0.0.1:${await bare.nextLine()}`;
  const findings: Finding[] = [];
  try {
    for (const mode of MODES) {
      const floor = await measure(bareUrl, '/', {}, bare.pid, mode, async () => sendBare(bare, mode));
      const path = `/watch/v1/events?tenants=${TENANT}`;
      const ours = await measure(instance.url, path, instance.headers, instance.pid, mode, () =>
        change(instance, mode),
      );
      const ratio = ours.framesPerSecond / floor.framesPerSecond;
      const cpuRatio = ours.framesPerCpuSecond / floor.framesPerCpuSecond;
      findings.push({
        what: `fan-out to ${WATCHERS} watchers, ${mode.name}`,
        figure: `${rate(ours.framesPerSecond)}, ${rate(ours.framesPerCpuSecond)} per CPU second (bare ${rate(floor.framesPerSecond)}, ${rate(floor.framesPerCpuSecond)})`,
        ratio: `${ratio.toFixed(2)}×, per CPU second ${cpuRatio.toFixed(2)}×`,
        goal: mode.goal === undefined ? 'none' : `≥ ${mode.goal}×`,
        met: mode.goal === undefined ? undefined : ratio >= mode.goal,
      });
    }
  } finally {
    bare.kill('SIGKILL');
  }
  return findings;
}

async function measure(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  pid: number,
  mode: Mode,
  send: () => Promise<void>,
): Promise<Measured> {
  let received = 0;
  let arrived: { readonly at: number; readonly resolve: () => void } | undefined;
  const streams: RawStream[] = [];
  for (let n = 0; n < WATCHERS / 50; n += 1) {
    streams.push(...(await Promise.all(Array.from({ length: 50 }, () => openRawStream(url, path, headers, count)))));
  }
  const rates: number[] = [];
  const cpuRates: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    received = 0;
    const cpuBefore = await cpuSeconds(pid);
    const startedAt = performance.now();
    for (let n = 1; n <= mode.repeats; n += 1) {
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived = { at: n * mode.events * WATCHERS, resolve };
      await send();
      if (received >= arrived.at) resolve();
      await promise;
    }
    const frames = mode.events * mode.repeats * WATCHERS;
    rates.push((frames * 1000) / (performance.now() - startedAt));
    cpuRates.push(frames / ((await cpuSeconds(pid)) - cpuBefore));
  }
  for (const stream of streams) stream.close();
  return { framesPerSecond: median(rates), framesPerCpuSecond: median(cpuRates) };

  function count(frames: number): void {
    received += frames;
    if (arrived && received >= arrived.at) arrived.resolve();
  }
}

async function sendBare(bare: Child, { events, pace }: Mode): Promise<void> {
  bare.send(`${events} ${PAD.length + ENVELOPE_BYTES} ${pace}`);
}

async function change({ sql }: Instance, { events, pace }: Mode): Promise<void> {
  if (pace === 'now') {
    await sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'n', random())
      where uid in (select uid from plumbline.resource where kind = 'Widget' and tenant = ${TENANT} limit ${events})`;
    return;
  }
  let next = 0;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (next < events) {
        next += 1;
        await sql`update plumbline.resource set spec = jsonb_build_object('size', 1, 'pad', ${PAD}::text, 'n', random())
          where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name = ${`w${(next % 200) + 1}`}`;
      }
    }),
  );
}
