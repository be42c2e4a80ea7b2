/** The errors that end a watch, as its client is told them. */

import { type LogPoint, PositionExpired } from '#core/ports/event-log.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import { LogHole } from '#functions/watch/dense.ts';

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

/** The process could not renew in time: another may deliver by now. */
export function leaseLost(): StatusError {
  return new StatusError('ServiceUnavailable', 'the membership could not be kept alive in time; connect again', {
    details: { retryAfterSeconds: 1 },
  });
}

export function unackedTooLong(ackWaitMs: number): StatusError {
  return new StatusError(
    'Timeout',
    `an event lay unacked for ${ackWaitMs} ms after all before it were acked: the member was ended, and others get what ` +
      'it did not ack; connect again, and ask for a longer "ackWaitMs" if the work takes longer',
  );
}
