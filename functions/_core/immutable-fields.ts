/** Fields of a spec that a kind declares immutable: what they are at the creation, present or not, they stay. */

import { isJsonObject, sameJson, type JsonObject, type JsonValue } from '#core/json.ts';
import type { StatusCause } from '#core/status-error.ts';

/** As Kubernetes words it. */
export const IMMUTABLE = 'field is immutable';

/**
 * One cause per path that a write would change.
 * @param paths such as `spec.server`.
 * @param current every form that the stored spec may be written back in: as it is, and with the defaults of today.
 */
export function immutableCauses(
  paths: readonly string[],
  next: JsonObject,
  ...current: readonly JsonObject[]
): StatusCause[] {
  return paths
    .filter((path) => current.every((spec) => !sameJson(valueAt(spec, path), valueAt(next, path))))
    .map((field) => ({ reason: 'FieldValueInvalid', message: IMMUTABLE, field }));
}

function valueAt(spec: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = spec;
  for (const key of path.split('.').slice(1)) {
    value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
}
