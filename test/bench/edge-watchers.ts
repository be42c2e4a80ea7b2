/** Idle watchers of one shard: what each costs the isolate, of whose 128 MB the platform allows, beside one on Node. */

import { openWatchers } from '#test/bench/idle-watchers.ts';
import { type Instance, residentBytes } from '#test/bench/instance.ts';
import type { Finding } from '#test/bench/report.ts';
import { findWorkerd } from '#test/bench/workerd-process.ts';

const WATCHERS = 2_000;
const WARM_UP = 200;
/** Several bookmarks long. */
const SETTLE_MS = 8_000;
const ISOLATE_BYTES = 128 * 2 ** 20;

export async function compareWatchers(node: Instance, edge: Instance): Promise<readonly Finding[]> {
  const workerd = await findWorkerd(edge);
  const onNode = await grow(node, { resident: () => residentBytes(node.pid) });
  const onEdge = await grow(edge, { heap: () => workerd.heapBytes(), resident: () => residentBytes(workerd.pid) });
  const { heap, resident } = onEdge;
  const holds = (before: number, each: number): number => Math.floor((ISOLATE_BYTES - before) / each / 10) * 10;
  return [
    {
      what: `idle watchers of one shard on workerd in 128 MB (reckoned from ${WATCHERS})`,
      figure:
        `${holds(heap.before, heap.each)} by the isolate's heap: ${kib(heap.each)} each on top of ${mib(heap.before)}; ` +
        `${holds(heap.before, resident.each)} by what the process grows by, sockets and all: ${kib(resident.each)} each ` +
        `(on Node ${kib(onNode.resident.each)})`,
      ratio: `${(resident.each / onNode.resident.each).toFixed(1)}×`,
      goal: '',
      met: undefined,
    },
  ];
}

interface Growth {
  readonly before: number;
  /** Bytes for each watcher. */
  readonly each: number;
}

async function grow<Name extends string>(
  instance: Instance,
  measures: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Readonly<Record<Name, Growth>>> {
  // The first watchers pay for code and pools.
  const streams = [...(await openWatchers(instance, WARM_UP))];
  const before = await take(measures);
  streams.push(...(await openWatchers(instance, WATCHERS)));
  const after = await take(measures);
  for (const stream of streams) stream.close();
  const names = Object.keys(measures) as Name[];
  const growths = names.map((name) => [name, { before: before[name], each: (after[name] - before[name]) / WATCHERS }]);
  return Object.fromEntries(growths) as Record<Name, Growth>;
}

async function take<Name extends string>(
  measures: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number>> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const found: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(measures) as Name[]) found[name] = await measures[name]();
  return found as Record<Name, number>;
}

function kib(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
