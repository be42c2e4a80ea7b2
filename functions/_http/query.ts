/** Query parameters: each once, and of a known form. Names that are not asked for are ignored where clients add their own. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { StatusError } from '#core/status-error.ts';

/** A parameter's text; undefined when it is absent or empty. @throws {StatusError} BadRequest when it is given twice. */
export function textParameter(c: Context<HttpEnv>, name: string): string | undefined {
  const values = c.req.queries(name) ?? [];
  if (values.length > 1)
    throw new StatusError('BadRequest', `the query parameter "${name}" is given ${values.length} times`);
  return values[0] === '' ? undefined : values[0];
}

/**
 * Where a misspelt parameter must not become one that was not given.
 * @throws {StatusError} BadRequest for one that is not known, or a known one that is empty.
 */
export function assertParameters(c: Context<HttpEnv>, known: readonly string[]): void {
  const empty = known.find((name) => c.req.queries(name)?.includes(''));
  if (empty !== undefined) throw new StatusError('BadRequest', `the query parameter "${empty}" is empty`);
  const unknown = Object.keys(c.req.query()).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const shown = JSON.stringify(unknown.slice(0, 100));
  throw new StatusError('BadRequest', `the query parameter ${shown} is not known; known are ${known.join(', ')}`);
}

/** A parameter's integer. @throws {StatusError} BadRequest for anything else, naming the range. */
export function integerParameter(
  c: Context<HttpEnv>,
  name: string,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  const text = textParameter(c, name);
  if (text === undefined) return undefined;
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= range.min && value <= range.max) return value;
  throw unknownValue(name, text, `an integer from ${range.min} to ${range.max}`);
}

/** A parameter that is one of some words. @throws {StatusError} BadRequest for any other, naming them. */
export function wordParameter<const Word extends string>(
  c: Context<HttpEnv>,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = textParameter(c, name);
  if (text === undefined) return undefined;
  const word = words.find((known) => known === text);
  if (word === undefined) throw unknownValue(name, text, words.map((known) => `"${known}"`).join(' or '));
  return word;
}

function unknownValue(name: string, value: string, allowed: string): StatusError {
  const shown = JSON.stringify(value.slice(0, 100));
  return new StatusError('BadRequest', `the query parameter "${name}" is ${shown}; allowed is ${allowed}`);
}
