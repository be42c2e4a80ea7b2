/** The errors that end a watch, as its client is told them. */

import { type LogPoint, PositionExpired } from '#core/ports/event-log.ts';
import type { GroupDeletion } from '#core/ports/watch-groups.ts';
import { REASON_CODES, StatusError, toStatusError } from '#core/status-error.ts';
import { LogHole } from '#functions/watch/tail/dense.ts';
import type { FilterFailed } from '#functions/watch/filter/compile.ts';

/** With the same last event id, the next try would end the same way. */
const FINAL_CODES: ReadonlySet<number> = new Set([400, 410, 500]);

/**
 * What becomes of the last event id of a client whose stream ends with this error. Of lost tenants: who asked for all that
 * it sees goes on without them, from where it is; who named them does not.
 */
export function fateOfLastId({ code }: StatusError, tenantsAreNamed: boolean): 'kept' | 'forgotten' | 'renewed' {
  if (FINAL_CODES.has(code)) return 'forgotten';
  if (code !== REASON_CODES.Forbidden) return 'kept';
  return tenantsAreNamed ? 'forgotten' : 'renewed';
}

/**
 * Whatever was thrown, as a Status. Events that are lost to a client call for a new list.
 * @param cursorAt the cursor of a client that would go on from this point of the stream, with a gap.
 */
export function watchError(error: unknown, cursorAt: (stream: bigint, point: LogPoint) => string): StatusError {
  if (error instanceof LogHole) {
    return new StatusError('Expired', 'events of a stream are missing in the log; list and watch again', {
      cause: error,
    });
  }
  if (!(error instanceof PositionExpired)) return toStatusError(error);
  const message = `${error.message}; list and watch from the cursor of that list`;
  try {
    return new StatusError('Expired', message, { details: { cursor: cursorAt(error.stream, error.earliest) } });
  } catch {
    // Too large for a cursor.
    return new StatusError('Expired', message);
  }
}

/**
 * A filter that cannot be evaluated over an event ends its stream: whether the event matches is not known.
 * @param cursor behind what was delivered; undefined where the next try has to begin anew.
 */
export function filterFailed(error: FilterFailed, cursor: string | undefined): StatusError {
  const advice = cursor === undefined ? 'watch again' : 'go on from details.cursor';
  return new StatusError('BadRequest', `${error.message}; ${advice} with a filter that can be`, {
    details: {
      causes: [{ reason: 'FieldValueInvalid', message: error.message, field: 'filter' }],
      ...(cursor !== undefined && { cursor }),
    },
    cause: error,
  });
}

/** What a caller's filters cost, others wait for. */
export function tooManyFilters(max: number): StatusError {
  return new StatusError(
    'TooManyRequests',
    `the open streams of this caller have ${max} different filters on this server, and none may have more; use one filter ` +
      'for many streams, or select by kinds, types and labels, which are not limited',
    { details: { retryAfterSeconds: 30 } },
  );
}

/** The server, or this feed of it, is about to end. */
export function stopping(): StatusError {
  return new StatusError('ServiceUnavailable', 'the server is stopping; connect again', {
    details: { retryAfterSeconds: 1 },
  });
}

export function tooSlow(stallMs: number): StatusError {
  return new StatusError(
    'TooManyRequests',
    `the client took nothing for ${Math.round(stallMs / 1000)} s; connect again with the last event id`,
  );
}

export function tokenExpired(): StatusError {
  return new StatusError('Unauthorized', 'the token has expired; connect again with a new one and the last event id');
}

/** The issuer does not publish the key any more. */
export function keyWithdrawn(): StatusError {
  return new StatusError(
    'Unauthorized',
    'the token is signed by a key that its issuer has withdrawn; connect again with a new one and the last event id',
  );
}

/** The process could not renew in time: another may deliver by now. */
export function leaseLost(): StatusError {
  return new StatusError('ServiceUnavailable', 'the membership could not be kept alive in time; connect again', {
    details: { retryAfterSeconds: 1 },
  });
}

/** Whoever comes back would make a group of that name anew, from its beginning. */
export function groupDeleted({ by, reason }: GroupDeletion): StatusError {
  return new StatusError('NotFound', `the group was deleted by ${JSON.stringify(by)}: ${reason}`);
}

export function unackedTooLong(ackWaitMs: number): StatusError {
  return new StatusError(
    'Timeout',
    `an event lay unacked for ${ackWaitMs} ms after all before it were acked: the member was ended, and others get what ` +
      'it did not ack; connect again, and ask for a longer "ackWaitMs" if the work takes longer',
  );
}

/** The caller does not see any more what its stream shows. */
export function tenantsLost(): StatusError {
  return new StatusError('Forbidden', 'a tenant of this watch is not visible to the token any more; connect again');
}

export function blocksUnknown(): StatusError {
  return new StatusError(
    'ServiceUnavailable',
    'it cannot be told whether the token is blocked; connect again with the last event id',
    { details: { retryAfterSeconds: 1 } },
  );
}
