/**
 * `npm run bench [name …]`: measures what the README states, side by side with its floor in the same run. Nothing else
 * should run on the machine. Goals are printed, not asserted.
 */

import { benchBulk } from '#test/bench/bulk-transaction.ts';
import { benchCapture } from '#test/bench/capture.ts';
import { benchFanOut } from '#test/bench/fan-out.ts';
import { benchIdle } from '#test/bench/idle-watchers.ts';
import { type Instance, startInstance } from '#test/bench/instance.ts';
import { benchLatency } from '#test/bench/latency.ts';
import { benchList } from '#test/bench/list-pages.ts';
import { type Finding, printFindings } from '#test/bench/report.ts';
import { benchResume } from '#test/bench/resume.ts';

const BENCHES: Readonly<Record<string, (instance: Instance) => Promise<readonly Finding[]>>> = {
  capture: benchCapture,
  bulk: benchBulk,
  latency: benchLatency,
  resume: benchResume,
  list: benchList,
  fanout: benchFanOut,
  idle: benchIdle,
};

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(BENCHES);
const findings: Finding[] = [];
for (const name of names) {
  const bench = BENCHES[name];
  if (!bench) throw new Error(`there is no bench "${name}"; there are ${Object.keys(BENCHES).join(', ')}`);
  process.stderr.write(`${name} …\n`);
  const instance = await startInstance();
  try {
    findings.push(...(await bench(instance)));
  } finally {
    await instance.stop();
  }
}
printFindings(findings);
