/** `status.observedGeneration`: which generation a status speaks of. */

import type { JsonObject } from '#core/json.ts';
import { invalid, StatusError } from '#core/status-error.ts';

/**
 * Refuses a status that cannot be true: of a generation that does not exist yet, or older than what was reported.
 * @throws {StatusError} Invalid; Conflict when it would go backwards, for then another writer knows more.
 */
export function checkObservedGeneration(
  subject: string,
  before: JsonObject,
  after: JsonObject,
  generation: number,
): void {
  const observed = after['observedGeneration'] ?? 0;
  const reported = before['observedGeneration'] ?? 0;
  const field = 'status.observedGeneration';
  if (typeof observed !== 'number' || !Number.isSafeInteger(observed) || observed < 0) {
    throw invalid(subject, [{ reason: 'FieldValueInvalid', message: 'must be an integer from 0 on', field }]);
  }
  if (observed > generation) {
    const message = `is ${observed}, above metadata.generation, which is ${generation}`;
    throw invalid(subject, [{ reason: 'FieldValueInvalid', message, field }]);
  }
  if (typeof reported === 'number' && observed < reported) {
    const message = `cannot go back from ${reported} to ${observed}: read the object again`;
    throw new StatusError('Conflict', `${subject}: ${field} ${message}`, {
      details: { causes: [{ reason: 'FieldValueInvalid', message, field }] },
    });
  }
}
