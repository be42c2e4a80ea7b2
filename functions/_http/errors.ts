/** Errors as answers: every one is a `Status`, and none gives away more than the caller may know. */

import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';

import type { HttpEnv } from '#http/app.ts';
import { MissingRight } from '#http/authorize.ts';
import { byteLength } from '#http/compression.ts';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';

/** The answer to anything thrown. Faults of ours are logged with their cause and answered without it. */
export function answerError(c: Context<HttpEnv>, thrown: unknown, logger: Logger): Response {
  const error = toStatusError(thrown);
  const requestId = c.get('requestId');
  const fields = { requestId, method: c.req.method, path: c.req.path };
  if (error.code === 500) {
    logger.error({ ...fields, err: error.cause ?? error }, 'request failed');
    return answerStatus(c, new StatusError('InternalError', `${error.message}, with the request id ${requestId}`));
  }
  if (error.code > 500) logger.warn({ ...fields, err: error }, 'request could not be served');
  return answerStatus(c, error);
}

/** A `Status` with the headers that belong to its reason. */
export function answerStatus(c: Context<HttpEnv>, error: StatusError, headers: Record<string, string> = {}): Response {
  const retryAfterSeconds = error.details?.retryAfterSeconds;
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(retryAfterSeconds));
  const challenge = challengeOf(c.req.header('authorization'), error);
  if (challenge !== undefined) c.header('WWW-Authenticate', challenge);
  const text = `${JSON.stringify(error.toBody())}\n`;
  return c.body(text, error.code as ContentfulStatusCode, {
    'Content-Type': 'application/json',
    // Known, so that compression leaves it alone.
    'Content-Length': String(byteLength(text)),
    ...headers,
  });
}

/**
 * Who sent no bearer token is only told to; of one that was sent it is told what is wrong.
 * @see https://www.rfc-editor.org/rfc/rfc6750#section-3
 */
function challengeOf(authorization: string | undefined, error: StatusError): string | undefined {
  const challenge = 'Bearer realm="plumbline"';
  if (error instanceof MissingRight) return `${challenge}, error="insufficient_scope"`;
  if (error.reason !== 'Unauthorized') return undefined;
  if (authorization === undefined || !/^bearer(?: |$)/i.test(authorization)) return challenge;
  const description = error.message.replaceAll('"', "'").replaceAll(/[^ !\x23-\x5b\x5d-\x7e]/g, '?');
  return `${challenge}, error="invalid_token", error_description="${description}"`;
}

/** The same for a tenant that does not exist and for one that the caller may not see. */
export function tenantNotFound(tenant: string): StatusError {
  return new StatusError('NotFound', `tenant ${JSON.stringify(tenant)} not found`, {
    details: { name: tenant, kind: 'namespaces' },
  });
}

export function answerNotFound(c: Context<HttpEnv>): Response {
  return answerStatus(c, new StatusError('NotFound', `there is nothing at ${shortened(c.req.path)}`));
}

function shortened(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
