/** JSON values as types, and what is asked of them. */

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isJsonArray(value: unknown): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** The value of a text that is known to be JSON: the store's, or one of ours. Strangers' texts go to `parseStrictJson`. */
export function parseJson(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}

/** The same for the text of an object. */
export function parseJsonObject(text: string): JsonObject {
  return JSON.parse(text) as JsonObject;
}

/** Whether two values are the same document: the order of keys does not count, the order of elements does. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || (a === 0 && b === 0)) return true;
  if (isJsonArray(a)) {
    return isJsonArray(b) && a.length === b.length && a.every((element, index) => sameJson(element, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
  );
}
