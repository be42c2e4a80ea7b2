/**
 * JSON Patch: operations on a document, all of them or none. Stricter than most readers of it: an index is a decimal
 * without leading zero, within the list; nothing of a prototype is ever seen; and a patch cannot grow what it is sent to
 * beyond a bound, however it copies.
 *
 * @see https://www.rfc-editor.org/rfc/rfc6902
 */

import { sameJson, type JsonObject, type JsonValue } from '#core/json.ts';
import type { PatchOperation } from '#core/json-patch-operations.ts';
import { printPointer, type Pointer } from '#core/json-pointer.ts';
import { StatusError } from '#core/status-error.ts';
import { MAX_JSON_DEPTH } from '#core/strict-json.ts';

/** What a patch may copy and move in all, in characters. */
export const MAX_COPIED_CHARACTERS: number = 1024 * 1024;

type Mutable = null | boolean | number | string | Mutable[] | MutableObject;
interface MutableObject {
  [key: string]: Mutable;
}

/**
 * The document after all operations; the one that is given stays as it is.
 * @throws {StatusError} Invalid when a test fails or an operation does not fit, which is named without any value;
 * RequestEntityTooLarge when it copies too much.
 */
export function applyJsonPatch(document: JsonObject, operations: readonly PatchOperation[]): JsonValue {
  // The top has a place of its own, so that it can be replaced like any other value.
  const top: MutableObject = { document: cloned(document) };
  let copied = 0;
  for (const [index, operation] of operations.entries()) apply(operation, index);
  return top['document'] ?? null;

  function apply(operation: PatchOperation, index: number): void {
    switch (operation.op) {
      case 'add':
        return add(operation.path, fitting(operation.path, operation.value));
      case 'remove':
        remove(operation.path);
        return;
      case 'replace':
        return replace(operation.path, fitting(operation.path, operation.value));
      case 'move':
        // Where it is, it must be, even when it stays there.
        return add(operation.path, counted(operation.path, remove(operation.from)));
      case 'copy':
        return add(operation.path, cloned(counted(operation.path, at(operation.from))));
      case 'test':
        if (!sameJson(operation.value, at(operation.path))) throw refused('the value there is another one');
    }

    function add(path: Pointer, value: Mutable): void {
      const { parent, key } = placeOf(path);
      if (Array.isArray(parent)) parent.splice(key === '-' ? parent.length : indexIn(parent, key, 1), 0, value);
      else parent[key] = value;
    }

    function replace(path: Pointer, value: Mutable): void {
      at(path);
      const { parent, key } = placeOf(path);
      if (Array.isArray(parent)) parent[indexIn(parent, key)] = value;
      else parent[key] = value;
    }

    function remove(path: Pointer): Mutable {
      if (path.length === 0) throw refused('the whole object cannot be removed');
      const value = at(path);
      const { parent, key } = placeOf(path);
      if (Array.isArray(parent)) parent.splice(indexIn(parent, key), 1);
      else delete parent[key];
      return value;
    }

    function at(path: Pointer): Mutable {
      return ['document', ...path].reduce<Mutable>((value, step) => child(value, step), top);
    }

    /** The object or list that a value is in, or will be. */
    function placeOf(path: Pointer): { parent: Mutable[] | MutableObject; key: string } {
      const key = path.at(-1);
      if (key === undefined) return { parent: top, key: 'document' };
      const parent = at(path.slice(0, -1));
      if (typeof parent === 'object' && parent !== null) return { parent, key };
      throw refused('what it would be in is no object and no list');
    }

    function child(value: Mutable, step: string): Mutable {
      const found = Array.isArray(value)
        ? value[indexIn(value, step)]
        : typeof value === 'object' && value !== null && Object.hasOwn(value, step)
          ? value[step]
          : undefined;
      if (found === undefined) throw refused('there is nothing at the path');
      return found;
    }

    function indexIn(list: readonly Mutable[], step: string, beyond: 0 | 1 = 0): number {
      const place = /^(0|[1-9][0-9]{0,8})$/.test(step) ? Number(step) : Number.POSITIVE_INFINITY;
      if (place < list.length + beyond) return place;
      throw refused(`${JSON.stringify(step.slice(0, 100))} is no index in a list of ${list.length}`);
    }

    /** A value of the patch, in a copy: the patch may be applied again. */
    function fitting(path: Pointer, value: JsonValue): Mutable {
      if (path.length + measure(value).depth > MAX_JSON_DEPTH) throw tooDeep();
      return cloned(value);
    }

    function counted(path: Pointer, value: Mutable): Mutable {
      const { depth, characters } = measure(value);
      if (path.length + depth > MAX_JSON_DEPTH) throw tooDeep();
      copied += characters;
      if (copied <= MAX_COPIED_CHARACTERS) return value;
      const message = `the JSON patch copies and moves more than ${MAX_COPIED_CHARACTERS} characters`;
      throw new StatusError('RequestEntityTooLarge', message);
    }

    function tooDeep(): StatusError {
      return refused(`the object would be nested deeper than ${MAX_JSON_DEPTH} levels`);
    }

    function refused(problem: string): StatusError {
      const path = printPointer(operation.path);
      const message = `operation ${index} (${operation.op} ${JSON.stringify(path)}): ${problem}`;
      return new StatusError('Invalid', `the JSON patch does not apply: ${message}`, {
        details: { causes: [{ reason: 'FieldValueInvalid', message, field: path }] },
      });
    }
  }
}

function cloned(value: JsonValue): Mutable {
  return JSON.parse(JSON.stringify(value)) as Mutable;
}

/** How many objects and lists lie in each other, and how long the text is, about. */
function measure(value: JsonValue): { readonly depth: number; readonly characters: number } {
  if (typeof value === 'string') return { depth: 0, characters: value.length + 2 };
  if (typeof value !== 'object' || value === null) return { depth: 0, characters: 5 };
  let [depth, characters] = [0, 2];
  for (const [key, element] of Object.entries(value)) {
    const inner = measure(element);
    depth = Math.max(depth, inner.depth);
    characters += inner.characters + key.length + 2;
  }
  return { depth: depth + 1, characters };
}
