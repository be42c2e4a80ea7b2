/** Schemas of environment variables. */

import * as v from 'valibot';

/** One of these words. */
export function oneOf<const T extends readonly string[]>(values: T): v.PicklistSchema<T, string> {
  return v.picklist(values, values.join(', '));
}

/** From least to most. */
export function integer(least: number, most: number, allowed: string): v.GenericSchema<string, number> {
  const isInRange = (value: number): boolean => value >= least && value <= most;
  return v.pipe(v.string(), v.regex(/^\d{1,9}$/, allowed), v.transform(Number), v.check(isInRange, allowed));
}

/** Something that a file system can be asked for. */
export function path(allowed: string): v.GenericSchema<string, string> {
  return v.pipe(
    v.string(),
    v.check((value) => value.trim() !== '' && !value.includes('\0'), allowed),
  );
}

/** By comma; `*` is every one. */
export function origins(): v.GenericSchema<string | undefined, string[] | undefined> {
  const allowed = 'origins as browsers send them, by comma, such as https://app.example.com, or *';
  const isOrigin = (text: string): boolean => text === '*' || originOf(text) === text;
  const given = v.pipe(
    v.string(),
    v.check((text) => text.split(',').every((origin) => isOrigin(origin.trim())), allowed),
    v.transform((text) => text.split(',').map((origin) => origin.trim())),
  );
  return v.optional(given);
}

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}
