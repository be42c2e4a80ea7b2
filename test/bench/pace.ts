/** Load at a given rate, whatever the callee does: a stall shows in the latencies. */

/** Calls so often; resolves with the last call. @param fire is given the number of the call. */
export async function pace(perSecond: number, total: number, fire: (n: number) => void): Promise<void> {
  const startedAtMs = performance.now();
  for (let n = 0; n < total;) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAtMs) * perSecond) / 1_000) + 1);
    while (n < due) fire(n++);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
