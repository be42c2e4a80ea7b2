/** Every request has an id, in its answer and in the log. */

import type { MiddlewareHandler } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import type { Logger } from '#core/ports/logger.ts';

const SANE = /^[A-Za-z0-9][-A-Za-z0-9._:]{0,127}$/;

/**
 * Takes the caller's `X-Request-Id` when it is sane, or makes one. Logs the request when its answer begins, with its
 * path and without its query: selectors may be private, and cursors are.
 */
export function requestId(logger: Logger): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    const given = c.req.header('x-request-id');
    const id = given !== undefined && SANE.test(given) ? given : crypto.randomUUID();
    const startedAt = performance.now();
    c.set('requestId', id);
    // Before the answer is made: afterwards, each header would make it a second time.
    c.header('X-Request-Id', id);
    await next();
    logger.debug(
      {
        requestId: id,
        method: c.req.method,
        path: c.req.path,
        status: c.res.status,
        durationMs: Math.round(performance.now() - startedAt),
        subject: c.get('caller')?.subject,
      },
      'request',
    );
  };
}
