/** What patches of an object and of its status share: read, change, write if nobody else wrote, again if somebody did. */

import { aboutObject, objectNotFound } from '#functions/api/errors.ts';
import type { ObjectTarget } from '#functions/api/target.ts';
import type { Preconditions, ResourceStore } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** So many writers may come first. Each lost attempt is another writer's success. */
const MAX_ATTEMPTS = 32;

/** What a patch makes of the object that was read. */
export interface Change {
  /** What the patch itself demands; what it does not, is demanded as it was read. */
  readonly preconditions: Preconditions;
  write(conditions: Preconditions): Promise<ResourceRow>;
}

/** @throws {StatusError} NotFound; Conflict when the patch's own conditions fail, or too many writers came first. */
export async function patchObject(
  store: ResourceStore,
  target: ObjectTarget,
  change: (current: ResourceRow) => Promise<Change>,
): Promise<ResourceRow> {
  const { kind, scope, key } = target;
  let lost: { readonly error: StatusError; readonly resourceVersion: string } | undefined;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const current = await store.getForUpdate(scope, key);
    if (!current) throw objectNotFound(kind, key.name);
    const { resourceVersion } = current;
    // Nobody wrote in between: the conflict was not about versions, and would come again.
    if (lost?.resourceVersion === resourceVersion) throw lost.error;
    const { preconditions, write } = await change(current);
    try {
      return await aboutObject(target, write({ resourceVersion, ...preconditions }));
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'Conflict') throw error;
      if ((preconditions.resourceVersion ?? resourceVersion) !== resourceVersion) throw error;
      lost = { error, resourceVersion };
    }
  }
  const message = `${MAX_ATTEMPTS} other writers changed ${kind.kind} "${key.name}" first; try again`;
  throw new StatusError('Conflict', message, { cause: lost?.error });
}
