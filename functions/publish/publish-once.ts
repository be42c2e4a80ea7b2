/**
 * Drains the outbox: every stream that has records gets one batch a turn, until nothing is left. Any number of
 * processes may do so at once; who finds a stream busy leaves it to the other.
 */

import { type BatchLimits, type Outbox, RecordRejected } from '#core/ports/outbox.ts';
import { StatusError } from '#core/status-error.ts';

/** A hot tenant delays others by one batch of this size at most: about 20 ms. */
const BATCH: BatchLimits = { maxCount: 500, maxBytes: 4 * 1024 * 1024 };
/** The log in Kafka sends what they have in one request. */
const STREAMS_AT_ONCE = 16;

export interface PublishDeps {
  readonly outbox: Outbox;
  /** Told of every batch and of every record that had to be quarantined. */
  readonly onPublished?: (stream: bigint, count: number) => void;
  readonly onQuarantined?: (stream: bigint, reason: string) => void;
  /**
   * Told of a stream that could not be published, for no fault of its records; it is left alone until the next call.
   * Absent: the error is thrown, and ends the call.
   */
  readonly onStreamError?: (stream: bigint, error: unknown) => void;
}

/**
 * Publishes all that is visible now and what comes meanwhile, until a turn finds nothing it could publish.
 * @returns the number of published events.
 * @throws {StatusError} ServiceUnavailable when the outbox or the log is away; nothing is lost, call again.
 */
export async function publishOnce(deps: PublishDeps, signal?: AbortSignal): Promise<number> {
  const failed = new Set<bigint>();
  let total = 0;
  for (;;) {
    const streams = (await deps.outbox.pendingStreams()).filter((stream) => !failed.has(stream));
    const published = await turn(deps, streams, failed, signal);
    total += published;
    if (published === 0 || signal?.aborted) return total;
  }
}

async function turn(
  deps: PublishDeps,
  streams: readonly bigint[],
  failed: Set<bigint>,
  signal: AbortSignal | undefined,
): Promise<number> {
  const waiting = [...streams];
  let published = 0;
  await Promise.all(Array.from({ length: STREAMS_AT_ONCE }, takeStreams));
  return published;

  async function takeStreams(): Promise<void> {
    for (let stream = waiting.shift(); stream !== undefined && !signal?.aborted; stream = waiting.shift()) {
      const count = await publishOrLeave(stream);
      published += count;
    }
  }

  /** What is wrong with one stream must not keep the others waiting. */
  async function publishOrLeave(stream: bigint): Promise<number> {
    try {
      return await publishBatch(deps, stream);
    } catch (error) {
      if (!deps.onStreamError || isUnavailable(error)) throw error;
      failed.add(stream);
      deps.onStreamError(stream, error);
      return 0;
    }
  }
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

function isUnavailable(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'ServiceUnavailable';
}
