/** The errors of the resource API: how it names objects, and how it passes on what the store has refused. */

import { resourceOf, type Kind } from '#core/kind.ts';
import type { ObjectTarget } from '#functions/api/target.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import { staleness } from '#core/preconditions.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** The same for an object that is not there and for one that the caller may not see. */
export function objectNotFound(kind: Kind, name: string): StatusError {
  return new StatusError('NotFound', `${resourceOf(kind)} ${JSON.stringify(name)} not found`, {
    details: { name, group: kind.group, kind: kind.plural },
  });
}

/**
 * A conflict is told before all that is wrong with what was made of another state.
 * @throws {StatusError} Conflict
 */
export function refuseStale({ kind, key }: ObjectTarget, current: ResourceRow, preconditions: Preconditions): void {
  const problem = staleness(current, preconditions);
  if (problem === undefined) return;
  const details = { name: key.name, group: kind.group, kind: kind.plural, uid: current.uid };
  throw new StatusError('Conflict', `${kind.kind} ${JSON.stringify(key.name)}: ${problem}`, { details });
}

/** A call of the store about one object; its errors name that object as the API does. */
export async function aboutObject<T>({ kind, key }: ObjectTarget, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (error.reason === 'NotFound') throw objectNotFound(kind, key.name);
    const details = { ...error.details, name: key.name, group: kind.group, kind: kind.plural };
    throw new StatusError(error.reason, error.message, { details, cause: error });
  }
}
