/**
 * What can go wrong, by class. A `ConnectionError`, and a `StatusError` with code 408, 425, 429 or from 500 on, is tried
 * again by everything here, for as long as it takes; anything else ends what was asked for, with that error.
 */

import type { StatusBody, StatusDetails } from '#core/status-error.ts';

/** A `Status`, as the server sent it. Servers that are newer may know more reasons. */
export type Status = Omit<StatusBody, 'reason' | 'metadata'> & { readonly reason: string };

/** Nobody answered, the network broke, nothing came for too long, or no token was to be had. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** What answers is not a Plumbline of this protocol, or has not understood what was asked: an older one, or a stranger. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** The server has answered with an error, or ended the stream with one. */
export class StatusError extends Error {
  override readonly name: string = 'StatusError';
  readonly status: Status;
  /** How long the server asks to wait; 0 when it does not say. */
  readonly retryAfterMs: number;

  constructor(status: Status, retryAfterMs: number = 0) {
    super(status.message);
    this.status = status;
    this.retryAfterMs = Math.max(retryAfterMs, (status.details?.retryAfterSeconds ?? 0) * 1000);
  }

  /** The HTTP code. */
  get code(): number {
    return this.status.code;
  }

  get reason(): string {
    return this.status.reason;
  }

  get details(): StatusDetails {
    return this.status.details ?? {};
  }
}

/** 400: something that was asked for is wrong; the message names it. A forged or foreign cursor is one. */
export class BadRequest extends StatusError {
  override readonly name = 'BadRequest';
}

/** 401: the token was refused, and so was the one that its source gave then. */
export class Unauthorized extends StatusError {
  override readonly name = 'Unauthorized';
}

/** 403: no role of the token may do it. */
export class Forbidden extends StatusError {
  override readonly name = 'Forbidden';
}

/** 404: a tenant or kind that does not exist, or that the token may not see. */
export class NotFound extends StatusError {
  override readonly name = 'NotFound';
}

/** 409: members of the group are alive that select something else. */
export class Conflict extends StatusError {
  override readonly name = 'Conflict';
}

/** 410: the cursor is no place to go on from. Whoever keeps a picture of the objects must list again. */
export class CursorRefused extends StatusError {
  override readonly name: string = 'CursorRefused';
}

/** The events behind the cursor are not kept any more. */
export class Expired extends CursorRefused {
  override readonly name = 'Expired';

  /** From here one can go on, with a gap; undefined when the server does not say. */
  get earliestCursor(): string | undefined {
    return this.details.cursor;
  }
}

/** The tenant was deleted, and perhaps made again; or the log is not the one that it was. */
export class StreamRecreated extends CursorRefused {
  override readonly name = 'StreamRecreated';
}

/** The key that sealed the cursor is gone. */
export class CursorKeyRetired extends CursorRefused {
  override readonly name = 'CursorKeyRetired';
}

const BY_REASON: Readonly<Record<string, typeof StatusError>> = { Expired, StreamRecreated, CursorKeyRetired };

const BY_CODE: Readonly<Record<number, typeof StatusError>> = {
  400: BadRequest,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  410: CursorRefused,
};

const RETRIED_CODES: ReadonlySet<number> = new Set([408, 425, 429]);

/** The error of a Status, in its class. */
export function statusErrorOf(status: Status, retryAfterMs: number = 0): StatusError {
  const StatusClass = BY_REASON[status.reason] ?? BY_CODE[status.code] ?? StatusError;
  return new StatusClass(status, retryAfterMs);
}

/** Whether to try the same again may help. */
export function isRetried(error: unknown): error is ConnectionError | StatusError {
  if (error instanceof ConnectionError) return true;
  return error instanceof StatusError && (error.code >= 500 || RETRIED_CODES.has(error.code));
}

export function isStatus(value: unknown): value is Status {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    value.kind === 'Status' &&
    'code' in value &&
    typeof value.code === 'number' &&
    'reason' in value &&
    typeof value.reason === 'string' &&
    'message' in value &&
    typeof value.message === 'string'
  );
}
