/**
 * Drains the outbox: every stream that has records gets one batch a turn, until nothing is left. Any number of
 * processes may do so at once; who finds a stream busy leaves it to the other.
 */

import { pause } from '#loop/pause.ts';
import { type BatchLimits, type Outbox, RecordRejected } from '#core/ports/outbox.ts';
import { isUnavailable } from '#core/status-error.ts';

/** A hot tenant delays others by one batch of this size at most: about 20 ms. */
const BATCH: BatchLimits = { maxCount: 500, maxBytes: 4 * 1024 * 1024 };
/** The log in Kafka sends what they have in one request. */
const STREAMS_AT_ONCE = 16;
/** A stream that takes longer, such as one whose broker hangs, goes on beside the others. */
const PATIENCE_MS = 250;
/** Bounds memory: each has a batch in it. */
const MOST_UNDER_WAY = 64;
/** What comes while such streams are waited for is looked for so often. */
const LOOK_MS = 50;
/** Under load a call may never end. */
const LEFT_ALONE_MS = 1_000;

export interface PublishDeps {
  readonly outbox: Outbox;
  /** Told of every batch and of every record that had to be quarantined. */
  readonly onPublished?: (stream: bigint, count: number) => void;
  readonly onQuarantined?: (stream: bigint, reason: string) => void;
  /**
   * Told of a stream that could not be published, for no fault of its records; it is left alone for a second, or until
   * the next call. Absent: the error is thrown, and ends the call.
   */
  readonly onStreamError?: (stream: bigint, error: unknown) => void;
}

/**
 * Publishes all that is visible now and what comes meanwhile, until a turn finds nothing it could publish.
 * @returns the number of published events.
 * @throws {StatusError} ServiceUnavailable when the outbox or the log is away; nothing is lost, call again.
 */
export async function publishOnce(deps: PublishDeps, signal?: AbortSignal): Promise<number> {
  const underWay = new Map<bigint, Promise<void>>();
  const leftAloneUntilMs = new Map<bigint, number>();
  const errors: unknown[] = [];
  let total = 0;
  try {
    await publishAll();
  } finally {
    await Promise.all(underWay.values());
  }
  if (errors.length > 0) throw errors[0];
  return total;

  async function publishAll(): Promise<void> {
    for (;;) {
      const before = total;
      const pending = await deps.outbox.pendingStreams();
      await turn(pending.filter((stream) => !underWay.has(stream) && !isLeftAlone(stream)));
      if (errors.length > 0 || signal?.aborted) return;
      if (total > before) continue;
      if (underWay.size === 0) return;
      await withinTime(Promise.race(underWay.values()), LOOK_MS);
    }
  }

  function isLeftAlone(stream: bigint): boolean {
    return (leftAloneUntilMs.get(stream) ?? 0) > performance.now();
  }

  async function turn(streams: readonly bigint[]): Promise<void> {
    const waiting = [...streams];
    await Promise.all(Array.from({ length: STREAMS_AT_ONCE }, takeStreams));

    async function takeStreams(): Promise<void> {
      for (let stream = waiting.shift(); stream !== undefined; stream = waiting.shift()) {
        if (errors.length > 0 || signal?.aborted) return;
        const work = publishOrLeave(stream);
        underWay.set(stream, work);
        await (underWay.size < MOST_UNDER_WAY ? withinTime(work, PATIENCE_MS) : work);
      }
    }
  }

  /** Never rejects: what is wrong with one stream must not keep the others waiting. */
  async function publishOrLeave(stream: bigint): Promise<void> {
    try {
      const count = await publishBatch(deps, stream);
      total += count;
    } catch (error) {
      leftAloneUntilMs.set(stream, performance.now() + LEFT_ALONE_MS);
      if (deps.onStreamError && !isUnavailable(error)) deps.onStreamError(stream, error);
      else errors.push(error);
    } finally {
      underWay.delete(stream);
    }
  }
}

/** Resolves when it is done, or when the time is over. */
async function withinTime(work: Promise<void>, milliseconds: number): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, pause(milliseconds, over.signal)]);
  over.abort();
}

/** One batch; when it cannot be published as it is, its first record alone; when that fails too, quarantine. */
async function publishBatch(deps: PublishDeps, stream: bigint): Promise<number> {
  try {
    return await attempt(deps, stream, BATCH);
  } catch (error) {
    if (!(error instanceof RecordRejected)) throw error;
  }
  try {
    return await attempt(deps, stream, { ...BATCH, maxCount: 1 });
  } catch (error) {
    if (!(error instanceof RecordRejected)) throw error;
    await deps.outbox.quarantineHead(stream, error.message);
    deps.onQuarantined?.(stream, error.message);
    return 0;
  }
}

async function attempt(deps: PublishDeps, stream: bigint, limits: BatchLimits): Promise<number> {
  const { outcome, published, reason } = await deps.outbox.publishBatch(stream, limits);
  if (outcome === 'published') deps.onPublished?.(stream, published);
  if (outcome === 'quarantined') deps.onQuarantined?.(stream, reason ?? 'the object is too large for an event');
  return published;
}
