/**
 * What every HTTP function starts from: request ids, a line in the log, errors as `Status`, 404 for unknown routes, and
 * nothing for caches to keep.
 */

import { Hono } from 'hono';

import { allowOrigins } from '#http/cors.ts';
import { answerError, answerNotFound } from '#http/errors.ts';
import { noStore } from '#http/no-store.ts';
import { requestId } from '#http/request-id.ts';
import type { Caller } from '#core/identity.ts';
import type { Logger } from '#core/ports/logger.ts';

/** What middleware hands to handlers. `caller` is there behind `authenticate`. */
export interface HttpEnv {
  Variables: { requestId: string; caller: Caller };
}

export interface HttpDeps {
  readonly logger: Logger;
  /** Origins whose pages may call. @default none */
  readonly allowedOrigins?: readonly string[];
}

export function createHttpApp({ logger, allowedOrigins = [] }: HttpDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  app.use(requestId(logger));
  app.use(noStore);
  if (allowedOrigins.length > 0) app.use(allowOrigins(allowedOrigins));
  app.onError((error, c) => answerError(c, error, logger));
  app.notFound((c) => answerNotFound(c));
  return app;
}
