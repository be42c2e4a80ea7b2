/** What watching 500 tenants in Kafka costs while nothing happens: CPU of server and broker, sockets. */

import { readdir, readlink } from 'node:fs/promises';
import { cpuSeconds, type Instance } from '#test/bench/instance.ts';
import { openRawStream } from '#test/bench/raw-stream.ts';
import type { Finding } from '#test/bench/report.ts';

const TENANTS = 500;
/** Of one watch: a cursor holds 256 tenants. */
const AT_ONCE = 250;
const SECONDS = 20;

export async function benchIdleTopics(instance: Instance): Promise<readonly Finding[]> {
  const { sql, url, headers, pid } = instance;
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'system', 'plumbline.dev', 'Tenant', 'idle-' || i from generate_series(1, ${TENANTS}::int) i`;
  await until(async () => {
    const [row] = await sql<
      { unready: number }[]
    >`select count(*)::int as unready from plumbline.topic where ready_at is null`;
    return row?.unready === 0;
  });
  const socketsBefore = await sockets(pid);
  const cpuOf = await cpuOver(pid);
  const names = Array.from({ length: TENANTS }, (_, n) => `idle-${n + 1}`);
  const streams = await Promise.all(
    Array.from({ length: TENANTS / AT_ONCE }, (_, n) => {
      const tenants = names.slice(n * AT_ONCE, (n + 1) * AT_ONCE).join(',');
      return openRawStream(url, `/watch/v1/events?tenants=${tenants}`, headers, () => undefined);
    }),
  );
  // What it takes to begin is no part of idling.
  await pause(5_000);
  const socketsAfter = await sockets(pid);
  const watching = await cpuOver(pid);
  for (const stream of streams) stream.close();
  return [
    {
      what: `${TENANTS} idle tenants in Kafka, all watched`,
      figure: `${watching.toFixed(1)} % of a core (${cpuOf.toFixed(1)} % unwatched), ${socketsAfter - socketsBefore - streams.length} more sockets`,
      goal: 'small',
      met: undefined,
    },
  ];
}

/** Per cent of a core. */
async function cpuOver(pid: number): Promise<number> {
  const before = await cpuSeconds(pid);
  await pause(SECONDS * 1000);
  return ((await cpuSeconds(pid)) - before) * (100 / SECONDS);
}

async function sockets(pid: number): Promise<number> {
  const names = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(100);
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
