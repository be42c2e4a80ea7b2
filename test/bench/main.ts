/**
 * `npm run bench [name …]`: measures what the README states, side by side with its floor in the same run. Nothing else
 * should run on the machine. Goals are printed, not asserted.
 */

import { benchApiWrites } from '#test/bench/api-writes.ts';
import { benchBulk } from '#test/bench/bulk-transaction.ts';
import { benchCapture } from '#test/bench/capture.ts';
import { benchEdge } from '#test/bench/edge.ts';
import { benchFanOut } from '#test/bench/fan-out.ts';
import { benchHotTenant } from '#test/bench/hot-tenant.ts';
import { benchGroups } from '#test/bench/groups.ts';
import { benchIdle } from '#test/bench/idle-watchers.ts';
import { type Instance, startInstance } from '#test/bench/instance.ts';
import { benchLatency } from '#test/bench/latency.ts';
import { benchReconnect } from '#test/bench/mass-reconnect.ts';
import { benchList } from '#test/bench/list-pages.ts';
import { type Finding, printFindings } from '#test/bench/report.ts';
import { benchBulkInKafka } from '#test/bench/bulk-in-kafka.ts';
import { benchIdleTopics } from '#test/bench/idle-topics.ts';
import { withKafka } from '#test/bench/kafka.ts';
import { benchPublishKafka } from '#test/bench/publish-kafka.ts';
import { benchReconcile } from '#test/bench/reconcile.ts';
import { benchObjectCount } from '#test/bench/object-count.ts';
import { benchScoped } from '#test/bench/scoped.ts';
import { benchResume } from '#test/bench/resume.ts';
import { benchStall } from '#test/bench/stalled-watchers.ts';

const BENCHES: Readonly<Record<string, () => Promise<readonly Finding[]>>> = {
  capture: () => onInstance(benchCapture),
  bulk: () => onInstance(benchBulk),
  latency: () => onInstance(benchLatency),
  resume: () => onInstance(benchResume),
  list: () => onInstance(benchList),
  writes: () => onInstance(benchApiWrites),
  fanout: () => onInstance(benchFanOut),
  idle: () => onInstance(benchIdle),
  groups: () => onInstance(benchGroups),
  stall: () => onInstance(benchStall),
  reconnect: () => onInstance(benchReconnect),
  scoped: () => onInstance(benchScoped),
  'object-count': () => onInstance(benchObjectCount),
  'hot-tenant': benchHotTenant,
  reconcile: benchReconcile,
  edge: benchEdge,
  'publish-kafka': benchPublishKafka,
  'bulk-kafka': () => inKafka(benchBulkInKafka),
  'latency-kafka': () => inKafka(benchLatency),
  'resume-kafka': () => inKafka(benchResume),
  'idle-kafka': () => inKafka(benchIdleTopics),
};

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(BENCHES);
const findings: Finding[] = [];
for (const name of names) {
  const bench = BENCHES[name];
  if (!bench) throw new Error(`there is no bench "${name}"; there are ${Object.keys(BENCHES).join(', ')}`);
  process.stderr.write(`${name} …\n`);
  findings.push(...(await bench()));
}
printFindings(findings);

type Bench = (instance: Instance) => Promise<readonly Finding[]>;

async function onInstance(bench: Bench, kafkaBrokers?: readonly string[]): Promise<readonly Finding[]> {
  const instance = await startInstance({ kafkaBrokers });
  try {
    return await bench(instance);
  } finally {
    await instance.stop();
  }
}

async function inKafka(bench: Bench): Promise<readonly Finding[]> {
  return withKafka((brokers) => onInstance(bench, brokers));
}
