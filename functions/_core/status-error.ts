/**
 * The one error that callers see: a Kubernetes `Status` with a reason, an HTTP code and, where it helps, one cause per
 * field. Everything that a caller can be told is made here; anything else thrown is a fault of ours and answers 500.
 *
 * @see https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#response-status-kind
 */

/** Each reason has one HTTP code. Retrying helps only where `details.retryAfterSeconds` is given, or after a new read (Conflict). */
export const REASON_CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  RequestTimeout: 408,
  AlreadyExists: 409,
  Conflict: 409,
  Fenced: 409,
  Expired: 410,
  StreamRecreated: 410,
  CursorKeyRetired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  ExpectationFailed: 417,
  Invalid: 422,
  TooManyRequests: 429,
  RequestHeaderFieldsTooLarge: 431,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;

export type StatusReason = keyof typeof REASON_CODES;

/** What passes by itself: the answer always says when to try again, in a second if it was not said. */
const PASSING: readonly StatusReason[] = ['TooManyRequests', 'ServiceUnavailable', 'Timeout'];

/** One field that is wrong: `reason` as in Kubernetes (`FieldValueInvalid`, `FieldValueRequired`, `FieldValueForbidden` …). */
export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
  /** Where a watch can start again; with `Expired`, and when a filter failed. */
  readonly cursor?: string;
  /** What became of each part of a request of which nothing was done. */
  readonly results?: readonly { readonly status: string }[];
}

/** The body of every error answer, and the data of every `ERROR` event. */
export interface StatusBody {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  /** Of a list whose token has expired: how to go on all the same. */
  readonly metadata: { readonly continue?: string };
  readonly status: 'Failure';
  readonly message: string;
  readonly reason: StatusReason;
  readonly details?: StatusDetails;
  readonly code: number;
}

export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly reason: StatusReason;
  readonly code: number;
  readonly details: StatusDetails | undefined;
  readonly continueToken: string | undefined;

  constructor(
    reason: StatusReason,
    message: string,
    options: { readonly details?: StatusDetails; readonly continueToken?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.continueToken = options.continueToken;
    this.reason = reason;
    this.code = REASON_CODES[reason];
    const isPassing = PASSING.includes(reason);
    this.details = isPassing ? { retryAfterSeconds: 1, ...options.details } : options.details;
  }

  toBody(): StatusBody {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details && { details: this.details }),
      code: this.code,
    };
  }
}

/** 422 with one cause per field; the message names the first ones. */
export function invalid(
  subject: string,
  causes: readonly StatusCause[],
  about: Pick<StatusDetails, 'name' | 'group' | 'kind'> = {},
): StatusError {
  const shown = causes.slice(0, 3).map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
  const more = causes.length > shown.length ? ` (and ${causes.length - shown.length} more)` : '';
  return new StatusError('Invalid', `${subject} is invalid: ${shown.join('; ')}${more}`, {
    details: { ...about, causes },
  });
}

/** The answer to anything thrown: itself, or a generic 500 that gives nothing away. */
export function toStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  return new StatusError('InternalError', 'an internal error occurred; it was logged', { cause: error });
}

/** Whether it says that the database or the log is away: what was asked for may be asked again, as it was. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'ServiceUnavailable';
}
