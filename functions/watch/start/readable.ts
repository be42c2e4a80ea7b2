/** A cursor can be ahead of the head: an event can be read before its batch is completed. Then a watch waits for it. */

import type { CursorVector } from '#core/cursor.ts';
import type { EventLog, LogRange } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';

/** A batch is completed within milliseconds of its first event; behind a publisher that died, once its lease has run out. */
const PATIENCE_MS = 3_000;
/** Doubles with each look: a herd that comes back must not keep the database from what it waits for. */
const FIRST_PAUSE_MS = 25;

/**
 * What these streams hold, once they reach as far as the cursor. A cursor beyond what was ever assigned is not waited for.
 * @throws {StatusError} Timeout, when they did not reach as far for PATIENCE_MS.
 */
export async function rangesBehind(
  log: EventLog,
  streams: readonly bigint[],
  cursor: CursorVector,
): Promise<ReadonlyMap<bigint, LogRange>> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    const ranges = await log.ranges(streams);
    const isAhead = [...cursor].some(([id, { seq }]) => isUnreadable(seq, ranges.get(id)));
    if (!isAhead) return ranges;
    const remainingMs = deadlineMs - performance.now();
    if (remainingMs <= 0) throw notYet();
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, remainingMs)));
  }
}

function isUnreadable(seq: bigint, range: LogRange | undefined): boolean {
  return range !== undefined && seq > range.head.seq && seq <= range.assigned;
}

function notYet(): StatusError {
  const message = 'the log does not reach as far as this cursor yet: a batch is not completed; connect again with it';
  return new StatusError('Timeout', message, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message, field: 'from' }],
      retryAfterSeconds: 1,
    },
  });
}
