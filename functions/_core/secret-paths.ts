/** Secrets that a reader never saw: kept when it writes back what it read, and told apart from the rest. */

import { isJsonArray, isJsonObject, sameJson, type JsonObject, type JsonValue } from '#core/json.ts';

type Path = readonly string[];

/**
 * The next document with the secrets of the current one where it leaves them out: PUT's rule. An object that is left
 * out as a whole goes with its secrets. Elements of a list are matched by their `name`, or else by what a reader sees
 * of them; never by their place, where a removed element would hand its secret to the next one.
 * @param root `spec` or `status`; paths of the other one do not count.
 */
export function keepSecrets(
  root: 'spec' | 'status',
  current: JsonObject,
  next: JsonObject,
  secretPaths: readonly string[],
): JsonObject {
  return keep(current, next, pathsBelow(root, secretPaths), false) as JsonObject;
}

/**
 * The same for a document that a merge patch has made of the current one: only inside of lists, which a merge patch
 * replaces as a whole. Elsewhere it keeps what it does not name, and what it removes shall go.
 */
export function keepSecretsInLists(
  root: 'spec' | 'status',
  current: JsonObject,
  next: JsonObject,
  secretPaths: readonly string[],
): JsonObject {
  return keep(current, next, pathsBelow(root, secretPaths), true) as JsonObject;
}

/** The document as readers see it: without its secrets, as the database leaves them out. */
export function shownDocument(
  root: 'spec' | 'status',
  document: JsonObject,
  secretPaths: readonly string[],
): JsonObject {
  return withoutSecrets(document, pathsBelow(root, secretPaths)) as JsonObject;
}

/**
 * The secrets of a document and nothing else. Elements of lists keep their places, so that they can be put beside what a
 * reader sees; elements without a secret are empty objects.
 */
export function onlySecrets(root: 'spec' | 'status', document: JsonObject, secretPaths: readonly string[]): JsonObject {
  const picked = pick(document, pathsBelow(root, secretPaths));
  return isJsonObject(picked) ? picked : {};
}

/** Whether a document says anything at a secret path, be it null. */
export function hasSecrets(root: 'spec' | 'status', document: JsonObject, secretPaths: readonly string[]): boolean {
  return pick(document, pathsBelow(root, secretPaths)) !== undefined;
}

/** Undefined where there is no secret. */
function pick(value: JsonValue, paths: readonly Path[]): JsonValue | undefined {
  if (paths.some((path) => path.length === 0)) return value;
  if (paths.length === 0) return undefined;
  if (isJsonArray(value)) {
    const below = step(paths, '*');
    const elements = value.map((element) => pick(element, below));
    return elements.every((element) => element === undefined) ? undefined : elements.map((element) => element ?? {});
  }
  if (!isJsonObject(value)) return undefined;
  const entries = Object.entries(value).flatMap(([key, child]) => {
    const picked = pick(child, step(paths, key));
    return picked === undefined ? [] : [[key, picked] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function pathsBelow(root: string, secretPaths: readonly string[]): Path[] {
  return secretPaths.map((path) => path.split('.')).flatMap((path) => (path[0] === root ? [path.slice(1)] : []));
}

function keep(current: JsonValue, next: JsonValue, paths: readonly Path[], listsOnly: boolean): JsonValue {
  if (paths.length === 0) return next;
  if (isJsonArray(current) && isJsonArray(next)) {
    const below = step(paths, '*');
    if (below.length === 0) return next;
    // The elements themselves are secret: a reader sees an empty list, and writes that back.
    if (below.some((path) => path.length === 0)) return next.length === 0 && !listsOnly ? current : next;
    return next.map((element) => {
      const match = matchOf(element, current, next, below);
      return match === undefined ? element : keep(match, element, below, false);
    });
  }
  if (!isJsonObject(current) || !isJsonObject(next)) return next;
  const kept = new Map(Object.entries(next));
  for (const [key, value] of Object.entries(current)) {
    const below = step(paths, key);
    const isSecret = below.some((path) => path.length === 0);
    const left = Object.hasOwn(next, key) ? next[key] : undefined;
    if (left !== undefined) kept.set(key, keep(value, left, below, listsOnly));
    else if (isSecret && !listsOnly) kept.set(key, value);
  }
  return Object.fromEntries(kept);
}

/** What remains of the paths behind a key. */
function step(paths: readonly Path[], key: string): Path[] {
  return paths.flatMap((path) => (path[0] === key || path[0] === '*' ? [path.slice(1)] : []));
}

/** The current element that a new one stands for; undefined when there is none, or more than one. */
function matchOf(
  element: JsonValue,
  current: readonly JsonValue[],
  next: readonly JsonValue[],
  below: readonly Path[],
): JsonValue | undefined {
  const name = nameOf(element);
  const isSame =
    name === undefined
      ? (other: JsonValue) => sameJson(withoutSecrets(other, below), withoutSecrets(element, below))
      : (other: JsonValue) => nameOf(other) === name;
  const [match, ...others] = current.filter(isSame);
  return others.length > 0 || next.filter(isSame).length > 1 ? undefined : match;
}

function nameOf(element: JsonValue): JsonValue | undefined {
  return isJsonObject(element) && typeof element['name'] === 'string' ? element['name'] : undefined;
}

function withoutSecrets(value: JsonValue, paths: readonly Path[]): JsonValue {
  if (paths.length === 0) return value;
  if (isJsonArray(value)) {
    const below = step(paths, '*');
    if (below.some((path) => path.length === 0)) return [];
    return value.map((element) => withoutSecrets(element, below));
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, child]) => {
      const below = step(paths, key);
      return below.some((path) => path.length === 0) ? [] : [[key, withoutSecrets(child, below)]];
    }),
  );
}
