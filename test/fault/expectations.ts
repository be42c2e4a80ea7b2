/** What holds while a dependency is away. */

import { expect } from 'vitest';

import type { Writers } from '#test/fault/writers.ts';
import type { LocalInstance } from '#test/support/local-instance.ts';

/** No client waits longer for an answer. */
export const LONGEST_ANSWER_MS = 10_000;

/** Asserts that writes were refused as they should: 503 with Retry-After, never another error, never without an answer. */
export function expectRefusedWell(writers: Writers): void {
  const wrong = writers.refusals.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null);
  expect(wrong).toEqual([]);
  expect(writers.broken, 'connections broke instead of being answered').toBe(0);
  expect(writers.slowestMs).toBeLessThan(LONGEST_ANSWER_MS);
}

/** Waits until `/readyz` answers so; it must say what is wrong. */
export async function untilReadiness(opsUrl: string, status: 200 | 503, deadlineMs = 15_000): Promise<string> {
  const deadline = performance.now() + deadlineMs;
  let last = '';
  while (performance.now() < deadline) {
    const response = await fetch(`${opsUrl}/readyz`);
    last = await response.text();
    if (response.status === status) return last;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`/readyz did not answer ${status} within ${deadlineMs} ms; last: ${last}`);
}

/** Fails with what a process said when it has ended by itself: the server never dies of what it depends on. */
export async function expectAlive(instance: LocalInstance): Promise<void> {
  const ended = await Promise.race([instance.process.exit, Promise.resolve(undefined)]);
  if (ended) throw new Error(`the server ended with code ${ended.code}, signal ${ended.signal}: ${ended.errors}`);
}
