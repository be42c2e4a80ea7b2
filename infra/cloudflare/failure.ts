/** What a request is answered with that no function answered. */

import { createHttpApp } from '#http/app.ts';
import { StatusError } from '#core/status-error.ts';
import { audienceAt } from '#infra/cloudflare/config.ts';
import { edge, requestLogger } from '#infra/cloudflare/installation.ts';

/** As every function answers an error. */
export async function answerFailure(request: Request, error: unknown): Promise<Response> {
  const audience = audienceAt(request.url, edge);
  const app = createHttpApp({
    logger: requestLogger.child({ audience }),
    ...(audience === 'public' && { allowedOrigins: edge.config.allowedOrigins }),
  });
  app.all('*', () => {
    throw error;
  });
  return app.fetch(request);
}

/** Of a Durable Object that broke off: it is evicted, overloaded or bound to another class. The next call finds a new one. */
export function objectFailed(what: string, cause: unknown): StatusError {
  return new StatusError('ServiceUnavailable', `${what} broke off; try again`, { cause });
}
