/**
 * One tenant beside another that asks for pages as fast as it is answered, and heeds no refusal: at an instance that limits
 * each tenant, and at one that limits nobody.
 */

import { createWidgets, type Instance, published, startInstance, TENANT } from '#test/bench/instance.ts';
import { type Finding, milliseconds, percentile } from '#test/bench/report.ts';
import { startChild } from '#test/support/child.ts';

const SECONDS = 6;
const PER_SECOND = 50;
const CONNECTIONS = 32;
const LIMIT = 50;
const CALM = 'calm';

interface Times {
  readonly p50: number;
  readonly p99: number;
}

export async function benchHotTenant(): Promise<readonly Finding[]> {
  const limited = await onInstance({ TENANT_REQUESTS_PER_SECOND: String(LIMIT) });
  const free = await onInstance({});
  const ratio = (times: { alone: Times; beside: Times }): string =>
    `p50 ${(times.beside.p50 / times.alone.p50).toFixed(1)}×, p99 ${(times.beside.p99 / times.alone.p99).toFixed(1)}×`;
  const shown = ({ alone, beside, answers }: Outcome): string =>
    `p50 ${milliseconds(beside.p50)}, p99 ${milliseconds(beside.p99)}; alone ${milliseconds(alone.p50)}, ${milliseconds(alone.p99)}; the hot one got ${answers}`;
  return [
    {
      what: `GET of one tenant at ${PER_SECOND}/s, beside one that floods lists over ${CONNECTIONS} connections, at most ${LIMIT}/s allowed`,
      figure: shown(limited),
      ratio: ratio(limited),
      goal: 'p50 ≤ 2×',
      met: limited.beside.p50 <= 2 * limited.alone.p50,
    },
    { what: 'the same without a limit', figure: shown(free), ratio: ratio(free), goal: '', met: undefined },
  ];
}

interface Outcome {
  readonly alone: Times;
  readonly beside: Times;
  readonly answers: string;
}

async function onInstance(env: Readonly<Record<string, string>>): Promise<Outcome> {
  const instance = await startInstance({ env });
  try {
    const { sql, url, tokens } = instance;
    await createWidgets(sql, 5_000);
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values ('system', 'plumbline.dev', 'Tenant', ${CALM}, '{"quota": {"requestsPerSecond": 10000}}')`;
    await sql`insert into plumbline.resource (tenant, api_group, kind, name)
      values (${CALM}, 'example.dev', 'Widget', 'one')`;
    await published(sql);
    await measure(instance);
    const alone = await measure(instance);
    const flood = startChild('test/bench/flood-client.ts', [
      `${url}/apis/example.dev/v1/namespaces/${TENANT}/widgets?limit=100`,
      tokens.editor,
      String(CONNECTIONS),
    ]);
    await flood.nextLine();
    // The burst that it begins with is spent.
    await measure(instance);
    const beside = await measure(instance);
    flood.end();
    const answers = (await flood.nextLine()) ?? '';
    await flood.exit;
    return { alone, beside, answers };
  } finally {
    await instance.stop();
  }
}

/** Requests at fixed times, whether those before are answered or not. */
async function measure({ url, tokens }: Instance): Promise<Times> {
  const headers = { authorization: `Bearer ${tokens.viewer}` };
  const times: Promise<number>[] = [];
  const beganMs = performance.now();
  for (let n = 0; n < SECONDS * PER_SECOND; n += 1) {
    const atMs = beganMs + (n * 1000) / PER_SECOND;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())));
    times.push(timed());
  }
  const taken = await Promise.all(times);
  return { p50: percentile(taken, 0.5), p99: percentile(taken, 0.99) };

  async function timed(): Promise<number> {
    const startMs = performance.now();
    const answer = await fetch(`${url}/apis/example.dev/v1/namespaces/${CALM}/widgets/one`, { headers });
    await answer.text();
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    return performance.now() - startMs;
  }
}
