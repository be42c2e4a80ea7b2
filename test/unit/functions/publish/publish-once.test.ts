import { describe, expect, it } from 'vitest';
import type { Outbox } from '#core/ports/outbox.ts';
import { StatusError } from '#core/status-error.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';

/** Batches by stream; each takes what `publish` says. */
function outboxOf(batches: Map<bigint, number>, publish: (stream: bigint) => Promise<void>): Outbox {
  return {
    pendingStreams: () => Promise.resolve([...batches].flatMap(([stream, count]) => (count > 0 ? stream : []))),
    async publishBatch(stream) {
      await publish(stream);
      batches.set(stream, (batches.get(stream) ?? 0) - 1);
      return { outcome: 'published', published: 1 };
    },
    quarantineHead: () => Promise.reject(new Error('nothing is to be quarantined')),
  };
}

describe('publishOnce()', () => {
  it('publishes every batch of every stream, and says how many', async () => {
    const batches = new Map(Array.from({ length: 40 }, (_, n) => [BigInt(n), 3]));
    const outbox = outboxOf(batches, (stream) => sleep(Number(stream) % 5));
    expect(await publishOnce({ outbox })).toBe(120);
    expect([...batches.values()].every((count) => count === 0)).toBe(true);
  });

  it('goes on with the others beside streams that hang, and waits for those at its end', async () => {
    const hanging = Promise.withResolvers<void>();
    const batches = new Map([[0n, 5], ...Array.from({ length: 20 }, (_, n) => [BigInt(n + 1), 1] as const)]);
    const done: bigint[] = [];
    const outbox = outboxOf(batches, (stream) => (stream === 0n ? Promise.resolve() : hanging.promise));
    const call = publishOnce({ outbox, onPublished: (stream) => done.push(stream) });
    await expect.poll(() => done).toEqual([0n, 0n, 0n, 0n, 0n]);
    // More comes meanwhile.
    batches.set(0n, 2);
    await expect.poll(() => done).toHaveLength(7);
    hanging.resolve();
    expect(await call).toBe(27);
  });

  it('tries a stream again that failed, while others keep it busy', async () => {
    const batches = new Map([
      [0n, Number.POSITIVE_INFINITY],
      [1n, 1],
    ]);
    const stopping = new AbortController();
    const failed: unknown[] = [];
    const outbox = outboxOf(batches, async (stream) => {
      await sleep(5);
      if (stream === 1n && failed.length < 2) throw new Error('not now');
      if (stream === 1n) stopping.abort();
    });
    await publishOnce({ outbox, onStreamError: (stream) => failed.push(stream) }, stopping.signal);
    expect(failed).toEqual([1n, 1n]);
    expect(batches.get(1n)).toBe(0);
  });

  it('ends with what is under way when the database is away, and tells it', async () => {
    let underWay = 0;
    const outbox = outboxOf(new Map([1n, 2n, 3n].map((stream) => [stream, 1])), async (stream) => {
      underWay += 1;
      await sleep(Number(stream) * 20);
      underWay -= 1;
      if (stream === 1n) throw new StatusError('ServiceUnavailable', 'away');
    });
    await expect(publishOnce({ outbox, onStreamError: () => undefined })).rejects.toThrow('away');
    expect(underWay).toBe(0);
  });
});

async function sleep(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
