/** `If-Match`, as HTTP clients say which version a write was made from. @see https://www.rfc-editor.org/rfc/rfc9110#section-13.1.1 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import { isResourceVersion } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';

/**
 * The resourceVersion that the header demands; undefined without one, and for `*`, which any object fulfils.
 * @throws {StatusError} BadRequest for anything but one strong entity tag that is a resourceVersion.
 */
export function ifMatch(c: Context<HttpEnv>): string | undefined {
  const header = c.req.header('if-match')?.trim() ?? '*';
  if (header === '*') return undefined;
  const version = /^"(.*)"$/.exec(header)?.[1] ?? '';
  if (isResourceVersion(version)) return version;
  const message = `If-Match is ${JSON.stringify(header.slice(0, 100))}; it must be one resourceVersion in double quotes`;
  throw new StatusError('BadRequest', message);
}

/** What a body demands, and the header. @throws {StatusError} Conflict when they demand different versions. */
export function withIfMatch(preconditions: Preconditions, version: string | undefined): Preconditions {
  if (version === undefined) return preconditions;
  const { resourceVersion = version } = preconditions;
  if (resourceVersion === version) return { ...preconditions, resourceVersion };
  const message = `If-Match demands resourceVersion ${version}, but it is ${resourceVersion}: read the object again`;
  throw new StatusError('Conflict', message);
}
