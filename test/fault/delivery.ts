/** Compares what a watcher received with what writers were answered. */

import { expect } from 'vitest';

import type { ReceivedEvent, ResumingWatcher } from '#test/fault/resuming-watcher.ts';
import type { AcknowledgedWrite } from '#test/fault/writers.ts';

/**
 * Asserts that the watcher saw its stream without a gap, a repeat or a step back, and every acknowledged write in it
 * exactly once. Waits for the last of them first.
 */
export async function expectDelivered(
  watcher: ResumingWatcher,
  acknowledged: readonly AcknowledgedWrite[],
  deadlineMs = 30_000,
): Promise<void> {
  await untilAllCame(watcher, acknowledged, deadlineMs);
  expect(watcher.failures).toEqual([]);
  expect(gapsIn(watcher.events)).toEqual([]);
  const versions = new Map<string, bigint>();
  for (const { uid, resourceVersion } of watcher.events) {
    expect(resourceVersion, `a step back of ${uid}`).toBeGreaterThan(versions.get(uid) ?? 0n);
    versions.set(uid, resourceVersion);
  }
  expect(new Set(watcher.events.map(({ id }) => id)).size, 'ids are repeated').toBe(watcher.events.length);
}

async function untilAllCame(
  watcher: ResumingWatcher,
  acknowledged: readonly AcknowledgedWrite[],
  deadlineMs: number,
): Promise<void> {
  const missing = new Map(acknowledged.map((write) => [keyOf(write), write]));
  const count = missing.size;
  expect(count, 'two writes were answered alike').toBe(acknowledged.length);
  const seen = (event: ReceivedEvent): boolean => {
    missing.delete(keyOf(event));
    return missing.size === 0;
  };
  await watcher.until(seen, deadlineMs).catch((error: unknown) => {
    const lost = [...missing.keys()].slice(0, 5).join(', ');
    throw new Error(`${missing.size} of ${count} acknowledged writes did not come, such as ${lost}`, { cause: error });
  });
}

/** A deletion's event has a version of its own, which its answer does not tell. */
function keyOf({ type, uid, resourceVersion }: AcknowledgedWrite | ReceivedEvent): string {
  return type === 'DELETED' ? `${type} ${uid}` : `${type} ${uid} ${resourceVersion}`;
}

/** Where a tenant's numbers do not follow each other. */
export function gapsIn(events: readonly ReceivedEvent[]): string[] {
  const last = new Map<string, bigint>();
  const gaps: string[] = [];
  for (const { tenant, seq } of events) {
    const before = last.get(tenant);
    if (before !== undefined && seq !== before + 1n) gaps.push(`${tenant}: ${seq} behind ${before}`);
    last.set(tenant, seq);
  }
  return gaps;
}
