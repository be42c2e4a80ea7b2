/** Schemas of environment variables. */

import * as v from 'valibot';

/** One of these words. */
export function oneOf<const T extends readonly string[]>(values: T): v.PicklistSchema<T, string> {
  return v.picklist(values, values.join(', '));
}
