/** Conditional GET. @see https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';

/**
 * The answer with its `ETag`; 304 without a body when the client has it already. Compared weakly, as RFC 9110 wants it
 * for `If-None-Match`: whoever compresses on the way makes tags weak.
 * @param tag without quotes, of characters that need none.
 */
export function answerTagged(
  c: Context<HttpEnv>,
  body: string,
  tag: string,
  headers: Readonly<Record<string, string>>,
): Response {
  const tagged = { ...headers, ETag: `"${tag}"` };
  if (hasAlready(c.req.header('if-none-match'), tag)) {
    const { 'Content-Type': _, ...kept } = tagged as Record<string, string>;
    return c.body(null, 304, kept);
  }
  return c.body(body, 200, tagged);
}

function hasAlready(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((part) => {
    const given = part.trim();
    return given === '*' || given.replace(/^W\//, '') === `"${tag}"`;
  });
}
