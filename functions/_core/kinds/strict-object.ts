/** Objects whose unknown fields are errors, each of them: `v.strictObject` reports only the first. */

import * as v from 'valibot';

export function strictObject<const Entries extends v.ObjectEntries>(
  entries: Entries,
): v.ObjectWithRestSchema<Entries, v.NeverSchema<undefined>, undefined> {
  return v.objectWithRest(entries, v.never());
}
