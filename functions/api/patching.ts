/** What patches of an object and of its status share: read, change, write if nobody else wrote, again if somebody did. */

import { aboutObject, objectNotFound } from '#functions/api/errors.ts';
import type { ObjectTarget } from '#functions/api/target.ts';
import type { Preconditions, ResourceStore } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** So many writers may come first. Each lost attempt is another writer's success. */
const MAX_ATTEMPTS = 32;

/**
 * @param asked what the patch itself demands; a patch that names a resourceVersion is tried once.
 * @param write changes the object that was read, under the given conditions.
 * @throws {StatusError} NotFound; Conflict when the patch's own conditions fail, or too many writers came first.
 */
export async function patchObject(
  store: ResourceStore,
  target: ObjectTarget,
  asked: Preconditions,
  write: (current: ResourceRow, preconditions: Preconditions) => Promise<ResourceRow>,
): Promise<ResourceRow> {
  const { kind, scope, key } = target;
  let lost: { readonly error: StatusError; readonly resourceVersion: string } | undefined;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const current = await store.getForUpdate(scope, key);
    if (!current) throw objectNotFound(kind, key.name);
    const { resourceVersion } = current;
    // Nobody wrote in between: the conflict was not about versions, and would come again.
    if (lost?.resourceVersion === resourceVersion) throw lost.error;
    try {
      return await aboutObject(target, write(current, { resourceVersion, ...asked }));
    } catch (error) {
      const isLost = error instanceof StatusError && error.reason === 'Conflict' && asked.resourceVersion === undefined;
      if (!isLost) throw error;
      lost = { error, resourceVersion };
    }
  }
  throw new StatusError(
    'Conflict',
    `${MAX_ATTEMPTS} other writers changed ${kind.kind} "${key.name}" first; try again`,
    {
      cause: lost?.error,
    },
  );
}
