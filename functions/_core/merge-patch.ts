/** JSON Merge Patch. @see https://www.rfc-editor.org/rfc/rfc7386 */

import { isJsonObject, type JsonValue } from '#core/json.ts';

/**
 * The document after the patch; both stay as they are. `null` removes, objects merge, anything else replaces. Keys are
 * always own properties of the result, and a patch's `__proto__` is left out.
 */
export function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map(isJsonObject(target) ? Object.entries(target) : []);
  for (const [key, change] of Object.entries(patch)) {
    if (key === '__proto__') continue;
    if (change === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), change));
  }
  return Object.fromEntries(merged);
}
