/** Ten thousand watchers that wait: what each costs in the server's memory. */

import { type Instance, TENANT, residentBytes } from '#test/bench/instance.ts';
import { openRawStream, type RawStream } from '#test/bench/raw-stream.ts';
import type { Finding } from '#test/bench/report.ts';

const WATCHERS = 10_000;
const AT_ONCE = 100;
const WARM_UP = 500;

export async function benchIdle(instance: Instance): Promise<readonly Finding[]> {
  // The first watchers pay for code and pools.
  const warm = await openWatchers(instance, WARM_UP);
  const before = await residentBytes(instance.pid);
  const streams = await openWatchers(instance, WATCHERS);
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  const after = await residentBytes(instance.pid);
  for (const stream of [...warm, ...streams]) stream.close();
  const kib = (after - before) / WATCHERS / 1024;
  return [
    {
      what: `${WATCHERS} idle watchers, with bookmarks`,
      figure: `${kib.toFixed(1)} KiB each (${Math.round(after / 2 ** 20)} MiB in all)`,
      goal: '≤ 22 KiB',
      met: kib <= 22,
    },
  ];
}

/** That read and want nothing. */
export async function openWatchers({ url, headers }: Instance, count: number): Promise<readonly RawStream[]> {
  const streams: RawStream[] = [];
  while (streams.length < count) {
    const batch = Math.min(AT_ONCE, count - streams.length);
    const path = `/watch/v1/events?tenants=${TENANT}`;
    streams.push(...(await Promise.all(Array.from({ length: batch }, () => openRawStream(url, path, headers)))));
  }
  return streams;
}
