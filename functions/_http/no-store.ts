/**
 * Answers are one caller's and one moment's: no cache keeps what does not say otherwise. That goes for errors too, for a
 * 404 without a word on caching may be kept, and would hide an object that has come since.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9111#section-4.2.2
 */

import type { MiddlewareHandler } from 'hono';

export const noStore: MiddlewareHandler = async (c, next) => {
  c.header('Cache-Control', 'no-store');
  await next();
};
