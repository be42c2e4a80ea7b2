/** Finalizers under concurrent writers: nobody takes one off that it has not seen. */

import { invalidObject, type ObjectAddress } from '#core/object-validation.ts';
import type { ResourceRow } from '#core/resource.ts';

/** What a write knows of the finalizers that it changes. */
export interface FinalizerKnowledge {
  /** The write is conditional on the list as it was read. */
  readonly isPinned: boolean;
  /** Finalizers that the write names one by one, as those that it takes off. */
  readonly named: ReadonlySet<string>;
}

/**
 * Refuses a write that takes finalizers off blindly. A list that was made of an older one lacks what another writer has put
 * on since, so the write would take that off as well. On an object that is being deleted nobody can put one on: there, a
 * single one may go so.
 * @throws {StatusError} Invalid, with what to send.
 */
export function refuseBlindRemoval(
  address: ObjectAddress,
  current: Pick<ResourceRow, 'finalizers' | 'deletionTimestamp'>,
  wanted: readonly string[],
  { isPinned, named }: FinalizerKnowledge,
): void {
  if (isPinned) return;
  const blind = current.finalizers.filter((name) => !wanted.includes(name) && !named.has(name));
  if (blind.length === 0 || (blind.length === 1 && current.deletionTimestamp !== null)) return;
  const message =
    `must be specified to take off ${blind.map((name) => JSON.stringify(name)).join(', ')}: ` +
    'another writer may have put it on since you read the object; or send a JSON patch with a test of metadata.resourceVersion';
  throw invalidObject(address, [{ reason: 'FieldValueRequired', message, field: 'metadata.resourceVersion' }]);
}
