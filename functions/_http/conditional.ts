/** Conditional GET. @see https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';

/**
 * For what has an `ETag`: the caller's own cache may keep it, and has to ask whether it is still the same before each
 * use. With `no-store` it could keep nothing to ask about; a cache that others share keeps nothing either way.
 */
export const ASK_AGAIN = 'no-cache, private';

/**
 * The JSON text with its `ETag`; 304 without a body when the client has it already. Compared weakly, as RFC 9110 wants it
 * for `If-None-Match`: whoever compresses on the way makes tags weak.
 * @param tag without quotes, of characters that need none.
 */
export function answerTagged(c: Context<HttpEnv>, body: string, tag: string, caching: string = ASK_AGAIN): Response {
  // Not with the body: once middleware has touched the answer, as CORS does, what was set before wins over that.
  c.header('Cache-Control', caching);
  c.header('ETag', `"${tag}"`);
  if (hasAlready(c.req.header('if-none-match'), tag)) return c.body(null, 304);
  return c.body(body, 200, { 'Content-Type': 'application/json' });
}

function hasAlready(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((part) => {
    const given = part.trim();
    return given === '*' || given.replace(/^W\//, '') === `"${tag}"`;
  });
}
