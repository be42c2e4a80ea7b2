/** What a write was made from, against what is there. */

import type { Preconditions } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';

/** Why the preconditions do not hold of the object; undefined when they do. */
export function staleness(
  row: Pick<ResourceRow, 'uid' | 'resourceVersion'>,
  { uid, resourceVersion }: Preconditions,
): string | undefined {
  if (uid !== undefined && row.uid !== uid) {
    return `the UID in the precondition (${uid}) is not the object's (${row.uid}); it might have been deleted and then recreated`;
  }
  if (resourceVersion !== undefined && row.resourceVersion !== resourceVersion) {
    return `the object has been modified (resourceVersion ${row.resourceVersion}, not ${resourceVersion}); read it again and apply your changes to the latest version`;
  }
  return undefined;
}
