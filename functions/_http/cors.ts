/** Pages of other origins: browsers let them read answers only of a server that names them. */

import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { HttpEnv } from '#http/app.ts';

/**
 * Answers preflights, and names the origin in each answer. Cookies play no part: who calls is in `Authorization` alone, so
 * a page can do nothing here that its token does not let it do.
 * @param origins such as `https://app.example.com`; `*` is every one.
 */
export function allowOrigins(origins: readonly string[]): MiddlewareHandler<HttpEnv> {
  const answer = cors({
    origin: origins.includes('*') ? '*' : [...origins],
    exposeHeaders: ['ETag', 'Retry-After', 'Warning', 'WWW-Authenticate', 'X-Request-Id'],
    maxAge: 600,
  });
  // It would answer every OPTIONS: those that are no preflights ask a path for its verbs.
  return (c, next) => (c.req.method === 'OPTIONS' && !isPreflight(c) ? next() : answer(c, next));
}

/** @see https://fetch.spec.whatwg.org/#cors-preflight-request */
function isPreflight(c: Context): boolean {
  return c.req.header('origin') !== undefined && c.req.header('access-control-request-method') !== undefined;
}

/** What an answer that does not pass through Hono, a stream, must carry for a page of another origin. */
export function originHeaders(c: Context<HttpEnv>): Readonly<Record<string, string>> {
  if (c.req.header('origin') === undefined) return {};
  const origin = c.res.headers.get('access-control-allow-origin');
  return origin === null ? {} : { 'Access-Control-Allow-Origin': origin, Vary: 'Origin' };
}
